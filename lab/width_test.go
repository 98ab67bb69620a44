package main

import (
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
)

// checkWidth reports the lines of out that are wider than a terminal of that many characters.
func checkWidth(t *testing.T, out string, width int) {
	t.Helper()
	for line := range strings.Lines(out) {
		if n := displaywidth.String(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d characters, more than %d: %q", n, width, line)
		}
	}
}

// Where there is no terminal, sentences are lines and tables fit the usual one.
func TestTablesFitWhenPiped(t *testing.T) {
	backends := strings.Join(contenderNames(), ",")
	for _, args := range [][]string{append([]string{"report", "--backend", backends}, tinyTour...), tinyRun} {
		code, out, errs := command(t.Context(), args...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		tables, rest := "", 0
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "   ") || strings.HasPrefix(line, "  ─") {
				tables += line
			} else {
				rest++
			}
		}
		if strings.Count(tables, "─\n") < 2 || rest == 0 {
			t.Errorf("%v: no tables in:\n%s", args, out)
		}
		checkWidth(t, tables, 80)
	}
}
