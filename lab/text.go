package main

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// wrapped breaks a line into lines that fit on w, if w is a terminal, each below
// the start of the first one's text, which follows lead.
func wrapped(w io.Writer, lead, line string) string {
	const widest = 100
	if width, _ := cli.TerminalSize(w); width > 0 {
		line = text.WrapSoft(line, max(min(width-1, widest)-len(lead), 10))
	}
	return lead + strings.ReplaceAll(strings.TrimRight(line, " \n"), "\n", "\n"+strings.Repeat(" ", len(lead)))
}
