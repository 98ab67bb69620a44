package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/term"
)

// TerminalSize returns the columns and lines of the terminal that w writes to, or 0 and 0 if w
// writes elsewhere.
func TerminalSize(w io.Writer) (width, height int) {
	if s, ok := w.(*sink); ok {
		w = s.Writer
	}
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// IsTerminal reports whether w writes to a terminal.
func IsTerminal(w io.Writer) bool {
	width, _ := TerminalSize(w)
	return width > 0
}

// HasColor reports whether w is a terminal that may show colours; see https://no-color.org.
func HasColor(w io.Writer) bool { return IsTerminal(w) && os.Getenv("NO_COLOR") == "" }

// Strong returns line in bold type if w is a terminal with colours.
func Strong(w io.Writer, line string) string {
	if !HasColor(w) {
		return line
	}
	return "\x1b[1m" + line + "\x1b[0m"
}

// Cut returns line with at most width columns. A longer line is cut and ends with tail.
func Cut(line string, width int, tail string) string {
	return displaywidth.TruncateString(line, max(width, 0), tail)
}

// A Bar is a progress bar on a terminal. If it is not on a terminal, it shows nothing. Several
// goroutines may call its methods.
type Bar struct {
	w     io.Writer // nil if it is not a terminal
	every time.Duration

	mu    sync.Mutex // guards the following
	shown time.Time
	drawn bool
}

// NewBar returns a bar on w. It is drawn at most once in each period of length every.
func NewBar(w io.Writer, every time.Duration) *Bar {
	if !IsTerminal(w) {
		w = nil
	}
	return &Bar{w: w, every: every}
}

// Show sets the bar to a fraction of 1 and the text behind it. It cuts the line to the terminal's
// present width, as a line that wraps cannot be erased. The last column stays free, because some
// terminals wrap when it is used.
func (b *Bar) Show(fraction float64, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w == nil || time.Since(b.shown) < b.every {
		return
	}
	const wide = 12
	done := int(fraction * wide)
	line := fmt.Sprintf("%3.0f%% %s%s %s", 100*fraction, strings.Repeat("█", done), strings.Repeat("░", max(wide-done, 0)), text)
	width, _ := TerminalSize(b.w)
	b.shown, b.drawn = time.Now(), true
	io.WriteString(b.w, "\r"+Cut(line, width-1, "")+"\x1b[K")
}

// Clear erases the bar until the next Show.
func (b *Bar) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drawn {
		io.WriteString(b.w, "\r\x1b[K")
		b.drawn = false
	}
}

// Println writes a line above the bar.
func (b *Bar) Println(w io.Writer, line string) {
	b.Clear()
	fmt.Fprintln(w, line)
}
