package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

var tinyDemo = []string{"demo", "--nodes", "2000", "--high", "2MiB", "--live", "1MiB", "--settle", "1ms", "--time", "10ms"}

func TestDemo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.html")
	code, out, errs := command(t.Context(), append(tinyDemo, "--html", file)...)
	if code != cli.OK || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if !strings.HasPrefix(out, "freehold demo\n") {
		t.Errorf("the first line is not the demo's:\n%s", out)
	}
	page := string(freehold.Must(os.ReadFile(file)))
	for _, want := range []string{
		"2,000 nodes of 56 bytes", "arena", "runs with budget.Start(nil)", "worst turn of 1 ms", "rises to 2.00 MiB", "everything freed", "one collection takes",
		"free a block twice: freehold: ", "free Go memory: freehold: ", "a limit: freehold: ", version(),
	} {
		if !strings.Contains(out, want) || !strings.Contains(page, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	rest, found := out, false
	for _, line := range []string{"measuring a linked list", "A linked list", "measuring a large live heap, 10ms for each column", "A large live heap",
		"measuring memory that comes back, with waits of 1ms", "Memory that comes back", "measuring mistakes", "wrote " + file} {
		if _, rest, found = strings.Cut(rest, "\n"+line+"\n"); !found {
			t.Errorf("no %q behind the lines before it:\n%s", line, out)
		}
	}
	if again := "freehold demo --nodes 2000 --live 1.00MiB --high 2.00MiB, "; !strings.Contains(page, again) {
		t.Errorf("no command line to run it again: %q", again)
	}
	checkPlain(t, out)
	if code, out, errs = command(t.Context(), append(tinyDemo, "--html", "-")...); code != cli.OK || !strings.HasPrefix(out, "<!doctype html>") || !strings.HasPrefix(errs, "freehold demo\n") || strings.Contains(errs, "wrote ") {
		t.Errorf("exit code %d, %.40q, %.40q", code, out, errs)
	}
}

func TestDemoStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	page := filepath.Join(t.TempDir(), "demo.html")
	filetest.Must(t, os.WriteFile(page, []byte("an earlier run"), 0o600))
	if code, _, errs := command(ctx, append(tinyDemo, "--html", page)...); code != cli.Interrupted || errs != "freehold: interrupted\n" {
		t.Errorf("exit code %d, %q", code, errs)
	}
	if b := freehold.Must(os.ReadFile(page)); string(b) != "an earlier run" {
		t.Errorf("the page is now %.100q", b)
	}
	for _, flags := range []string{"--nodes 0", "--nodes 999999999999", "--live 1KiB", "--high 1000TiB", "--high much"} {
		if code, out, _ := command(t.Context(), append(tinyDemo, strings.Fields(flags)...)...); code != cli.Misused || out != "" {
			t.Errorf("%s: exit code %d, %q", flags, code, out)
		}
	}
}
