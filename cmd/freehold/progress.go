package main

import (
	"fmt"
	"io"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/schollz/progressbar/v3"
)

// progress is a bar on a terminal, and nothing anywhere else. Its methods may
// be called by several goroutines.
type progress struct {
	bar *progressbar.ProgressBar
}

const progressSteps = 1000

// newProgress returns a bar on w.
func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		return &progress{}
	}
	bar := progressbar.NewOptions(progressSteps,
		progressbar.OptionSetWriter(oneLine{w}),
		progressbar.OptionSetWidth(12),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionClearOnFinish(),
	)
	return &progress{bar: bar}
}

// show sets the bar to a fraction of 1, and the text behind it.
func (p *progress) show(fraction float64, text string) {
	if p.bar == nil {
		return
	}
	p.bar.Describe(text)
	_ = p.bar.Set(int(fraction * (progressSteps - 1)))
}

// print writes a line above the bar.
func (p *progress) print(w io.Writer, text string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(w, text)
}

// close takes the bar away.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// oneLine is a terminal that gets each write cut to its width at that moment,
// so that a bar never wraps: it could not be taken away again. The last column
// stays free, because a terminal may wrap as soon as it is used.
type oneLine struct{ terminal io.Writer }

func (l oneLine) Write(p []byte) (int, error) {
	frame := string(p)
	if width := terminalWidth(l.terminal); width > 0 {
		frame = ansi.Truncate(frame, width-1, "")
	}
	if _, err := io.WriteString(l.terminal, frame); err != nil {
		return 0, err
	}
	return len(p), nil
}
