package main

import (
	"context"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

var tinyDemo = []string{"demo", "--nodes", "2000", "--high", "2MiB", "--live", "1MiB", "--settle", "1ms", "--time", "10ms"}

func TestDemo(t *testing.T) {
	code, out, errs := command(t.Context(), tinyDemo...)
	if code != cli.OK || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if !strings.HasPrefix(out, "freehold demo: ") {
		t.Errorf("the first line is not the demo's:\n%s", out)
	}
	for _, want := range []string{
		"2,000 nodes of 56 bytes", "arena.Arena\n", "worst turn of 1 ms", "rises to 2.00 MiB", "everything freed",
		"free a block twice:\n    freehold: ", "free Go memory:\n    freehold: ", "a limit:\n    freehold: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	checkPlain(t, out)
	for line := range strings.Lines(out) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 100 && !strings.Contains(line, "freehold") {
			t.Errorf("a line of %d characters: %q", n, line)
		}
	}
}

func TestDemoStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := command(ctx, tinyDemo...); code != cli.Interrupted || errs != "freehold: interrupted\n" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	for _, flags := range []string{"--nodes 0", "--nodes 999999999999", "--live 1KiB", "--high 1000TiB", "--high much"} {
		if code, out, _ := command(t.Context(), append(tinyDemo, strings.Fields(flags)...)...); code != cli.Misused || out != "" {
			t.Errorf("%s: exit code %d, %q", flags, code, out)
		}
	}
}
