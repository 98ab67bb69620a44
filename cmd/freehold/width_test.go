package main

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// checkWidth reports the lines of out that are wider than a terminal of that many characters.
func checkWidth(t *testing.T, out string, width int) {
	t.Helper()
	for line := range strings.Lines(out) {
		for state := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), "\r") {
			if n := ansi.StringWidth(state); n > width {
				t.Errorf("%d characters, more than %d: %q", n, width, state)
			}
		}
	}
}
