package report

import (
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Figure writes a number for a reader: with decimals below 100, and with commas from there on.
func Figure(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return humanize.Comma(int64(math.Round(v)))
	}
}

// Percent writes a share as a percentage.
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) }

// Joined lists words as in a sentence: "a, b and c".
func Joined(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Wrapped breaks a line into lines that fit on w, if w is a terminal, each below
// the start of the first one's text, which follows lead.
func Wrapped(w io.Writer, lead, line string) string {
	const widest = 100
	if width, _ := cli.TerminalSize(w); width > 0 {
		line = text.WrapSoft(line, max(min(width-1, widest)-len(lead), 10))
	}
	return lead + strings.ReplaceAll(line, "\n", "\n"+strings.Repeat(" ", len(lead)))
}
