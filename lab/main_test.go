package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Lab starts its own program as a child. Within tests that program is the
// test binary, which is then the command itself.
const asCommand = "FREEHOLD_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" && !(len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-test.")) {
		main()
	}
	os.Setenv(asCommand, "1")
	os.Exit(m.Run())
}

// command runs the command line and returns its exit code and its output.
func command(ctx context.Context, args ...string) (code int, out, err string) {
	var o, e bytes.Buffer
	code = program().Run(ctx, args, cli.Streams{Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// Runs that take no time.
var (
	tinyMemtest = []string{"memtest", "--high", "16MiB", "--cycles", "3", "--goroutines", "2", "--settle", "1ms"}
	tinyGCLab   = []string{"gclab", "--live", "1MiB", "--time", "20ms", "--workers", "2", "--array", "64KiB", "--headroom", "512MiB", "--reserve", "1MiB"}
	tinyBox     = []string{"budget", "--box", "none", "--limits", "128MiB", "--shares", "30", "--rounds", "1", "--hold", "30ms", "--go-live", "1"} // which is a node for each processor
)

func with(args []string, more ...string) []string { return append(slices.Clone(args), more...) }

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		args string
		code int
		want string // somewhere in the output or the errors
	}{
		{"", 0, "Usage: lab"},
		{"memtest --help", 0, "--settle"},
		{"--version", 0, version() + "\n"},
		{"nothing", 2, "unexpected argument nothing; see lab --help"},
		{"child gc go {", 2, "settings: "},

		{"memtest --backend=", 2, `--backend must be one of "go","freehold","libc","jemalloc"`},
		{"memtest --high 0 --goroutines 2", 2, "--high 0 B: 8.00 MiB to "},
		{"memtest --high 1GiB --goroutines 0", 2, "--goroutines 0: 1 to "},
		{"memtest --sizes huge", 2, `--sizes must be one of "big","small","both"`},
		{"memtest --high much", 2, `"much" is not a size: write bytes, or a number with KiB`},
		{"memtest --high 1MiB --sizes small --low 1MiB --goroutines 1", 2, "--low 1.00 MiB: 0 B to 1024 KiB"},
		{"memtest --high 1024TiB", 2, "--high"},
		{"memtest --high 1024TiB --force", 2, "a table of chunks of"},
		{"memtest --high 7000000TiB --force", 2, "--high 6.68 EiB: "},
		{"memtest --backend libc --limit 1GiB", 2, "has no hard limit"},
		{"memtest --high 64MiB --goroutines 2 --csv " + dir, 2, "cannot write"},
		{"memtest --high 64MiB --goroutines 2 --html " + dir + "/no/a.html", 2, "cannot write"},
		{"memtest --high 64MiB --goroutines 2 --csv - --html -", 2, "--csv and --html both write -"},

		{"budget --limits 1MiB", 2, "--limits 1.00 MiB: 64.0 MiB to "},
		{"budget --limits 1000TiB", 2, "--limits 1000 TiB: 64.0 MiB to "},
		{"budget --shares 50,100", 2, "--shares 100: 1 to 99 are possible"},
		{"budget --limits 1GiB --go-live 1GiB", 2, "--go-live 1.00 GiB: 0 B to "},
		{"budget --with magic", 2, `--with must be one of "default","limit","budget"`},
		{"budget --box paper", 2, `--box must be one of "cgroup","none"`},

		{"gclab --data heap", 2, `--data must be one of "array","nodes","map","strings"`},
		{"gclab --backend libc", 2, `--backend must be one of "go","flat","freehold"`},
		{"gclab --tuning off", 2, `--tuning must be one of "default","limit"`},
		{"gclab --data strings --backend flat", 2, "nothing is left to measure"},
		{"gclab --live 8000000TiB", 2, "--live 7.63 EiB: 1.00 MiB to 1.00 PiB are possible"},
		{"gclab --live 1000TiB", 2, "array of pointers (Go heap, default) may take 2.93 PiB: "},
		{"gclab --live 1000TiB --tuning limit", 2, "array of pointers (Go heap, limit) may take 1.95 PiB: "},
		{"gclab --reserve 1000TiB", 2, "of which 1000 TiB are to stay so; choose less"},
		{"gclab --time 0s", 2, "--time 0s: 1ms to "},
		{"gclab --live 1MiB --workers 2 --array 64KiB --headroom 1MiB", 2, "--headroom 1.00 MiB: 32.3 MiB to "},
		{"gclab --live 1MiB --workers=-1", 2, "--workers -1: 0 to "},

		{"bench --rounds 0", 2, "--rounds 0, want 1 or more"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			code, out, err := command(t.Context(), strings.Fields(tt.args)...)
			if code != tt.code || !strings.Contains(out+err, tt.want) {
				t.Errorf("exit code %d, want %d; printed %q and %q, want %q in it", code, tt.code, out, err, tt.want)
			}
			if code == cli.Misused && out != "" {
				t.Errorf("a wrong flag printed results: %q", out)
			}
		})
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("wrong flags left %v behind", left)
	}
}

// broken is a writer that takes some bytes and then no more.
type broken struct{ left int }

var errBroken = errors.New("no space left")

func (b *broken) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errBroken
	}
	b.left -= len(p)
	return len(p), nil
}

// A report that cannot be written is a failure, whatever part of it is lost.
func TestReportThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{tinyMemtest, with(tinyMemtest, "--csv", "-"), with(tinyMemtest, "--html", "-")} {
		var errs bytes.Buffer
		code := program().Run(t.Context(), args, cli.Streams{Out: &broken{200}, Err: &errs})
		if n := strings.Count(errs.String(), errBroken.Error()); code != cli.Failed || n != 1 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
	// The same where people read the report on standard error.
	var out bytes.Buffer
	code := program().Run(t.Context(), with(tinyMemtest, "--csv", "-"), cli.Streams{Out: &out, Err: &broken{200}})
	if rows := rowsOf(t, out.String()); code != cli.Failed || len(rows) != 5 {
		t.Errorf("exit code %d, rows %v", code, rows)
	}
}

// rowsOf returns the rows of a CSV, its head first, which are all of one length.
func rowsOf(t *testing.T, text string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%v: %q", err, text)
	}
	return rows
}

func rowsIn(t *testing.T, path string) [][]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return rowsOf(t, string(data))
}

var (
	control = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`)
	outside = regexp.MustCompile(`(?i)https?://|src\s*=|href\s*=\s*"[^#]|@import|url\(`)
)

// reportOf runs a command that succeeds, and verifies its output without a terminal:
// sentences are lines, tables fit the usual one, and the page needs nothing else.
func reportOf(t *testing.T, args ...string) (out, page string) {
	t.Helper()
	html := filepath.Join(t.TempDir(), "a.html")
	code, out, errs := command(t.Context(), with(args, "--html", html)...)
	if code != cli.OK {
		t.Fatalf("%v: exit code %d: %s", args, code, errs)
	}
	if at := control.FindString(out + errs); at != "" {
		t.Errorf("piped output has the control character %q:\n%s", at, out)
	}
	tables := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "   ") || strings.HasPrefix(line, "  ─") {
			tables++
			if n := displaywidth.String(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("a line of a table has %d characters: %q", n, line)
			}
		}
	}
	if tables < 3 {
		t.Errorf("%v: no tables in:\n%s", args, out)
	}
	checkPage(t, html)
	data, _ := os.ReadFile(html)
	return out, string(data)
}

func checkPage(t *testing.T, html string) {
	t.Helper()
	data, err := os.ReadFile(html)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	if at := outside.FindString(page); at != "" {
		t.Errorf("the page refers to something outside of it: %q", at)
	}
	wants(t, page, "<!doctype html>", "</html>", "light-dark(", "How this was measured")
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || strings.Contains(page, "ZgotmplZ") {
		t.Error("the page has figures that are none")
	}
}

// wants fails for each text that is missing.
func wants(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}
