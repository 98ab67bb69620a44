package main

import (
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// fileOf returns the file that w writes to, if it does.
func fileOf(w io.Writer) (*os.File, bool) {
	if s, ok := w.(*sink); ok {
		w = s.Writer
	}
	f, ok := w.(*os.File)
	return f, ok
}

// isTerminal reports whether w shows its text to a person.
func isTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// hasColor reports whether w may be sent colours; see https://no-color.org.
func hasColor(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// terminalWidth returns w's width in characters, 0 if it has none.
func terminalWidth(w io.Writer) int {
	f, ok := fileOf(w)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// strong emphasises text on a terminal that has colours.
func strong(w io.Writer, line string) string {
	if !hasColor(w) {
		return line
	}
	return "\x1b[1m" + line + "\x1b[0m"
}

// wrapped breaks text into lines that fit on w, if w is a terminal, each below
// the start of the first one's text, which lead stands before.
func wrapped(w io.Writer, lead, line string) string {
	const widest = 100
	if width := terminalWidth(w); width > 0 {
		line = text.WrapSoft(line, max(min(width-1, widest)-len(lead), 10))
	}
	return lead + strings.ReplaceAll(strings.TrimRight(line, " \n"), "\n", "\n"+strings.Repeat(" ", len(lead)))
}
