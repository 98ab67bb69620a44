// Bar: how far it is, on a terminal.

package main

import (
	"io"
	"os"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// newBar draws to a terminal seldom enough not to disturb what is measured,
// and nothing elsewhere.
func newBar(w io.Writer, steps int, what string) *progressbar.ProgressBar {
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(oneLine{w}),
		progressbar.OptionSetWidth(12),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(time.Second),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(widthOf(w) > 0),
	)
}

// widthOf returns the width of a terminal in characters, 0 for anything else.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// oneLine is a terminal that gets each write cut to its width at that moment,
// so that a bar never wraps: it could not be taken away again.
type oneLine struct{ terminal io.Writer }

func (l oneLine) Write(p []byte) (int, error) {
	frame := string(p)
	if width := widthOf(l.terminal); width > 0 {
		frame = ansi.Truncate(frame, width-1, "")
	}
	if _, err := io.WriteString(l.terminal, frame); err != nil {
		return 0, err
	}
	return len(p), nil
}
