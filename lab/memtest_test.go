package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tinyRun is a memtest that takes no time.
var tinyRun = []string{"memtest", "--high", "16MiB", "--cycles", "3", "--goroutines", "2", "--settle", "1ms"}

func TestMemtest(t *testing.T) {
	for _, kind := range backends {
		t.Run(kind.name, func(t *testing.T) {
			dir := t.TempDir()
			path := func(name string) string { return filepath.Join(dir, name) }
			// A file that is there already is replaced as a whole.
			if err := os.WriteFile(path("a.csv"), bytes.Repeat([]byte("old,"), 10_000), 0o644); err != nil {
				t.Fatal(err)
			}
			args := append(tinyRun, "--backend", kind.name, "--csv", path("a.csv"), "--png", path("a.png"), "--html", path("a.html"))
			code, out, errs := commandProcess(t, nil, args...)
			if code == cli.Misused && strings.Contains(errs, "lab: "+kind.name+": ") {
				t.Skip(errs) // it cannot be had here
			}
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			for _, want := range []string{
				"lab memtest: " + kind.name + ", preparing 3 cycles\n", "fragmentation", "after Trim", "In the end 0 B live",
				"1.00 MiB to 16.0 MiB, 3 cycles, 2 goroutines, seed 1",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in:\n%s", want, out)
				}
			}
			checkPlain(t, out+errs)
			checkCSV(t, path("a.csv"), 3, true)
			checkPNG(t, path("a.png"))
			checkHTML(t, path("a.html"), "Does memory come back?", "resident", "after settle")
		})
	}
}

// checkCSV verifies the rows: a head, one per cycle, and one for the end.
func checkCSV(t *testing.T, path string, cycles int, end bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, string(data), cycles, end)
}

func checkRows(t *testing.T, text string, cycles int, end bool) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll() // an error if rows differ in length
	if err != nil {
		t.Fatal(err)
	}
	want := 1 + cycles
	if end {
		want++
	}
	if len(rows) != want {
		t.Fatalf("%d rows, want %d: %v", len(rows), want, rows)
	}
	if rows[0][2] != "cycle" || rows[0][9] != "live" {
		t.Errorf("the head is %v", rows[0])
	}
	if end && (rows[want-1][2] != "end" || rows[want-1][9] != "0") {
		t.Errorf("the last row is %v, want nothing live", rows[want-1])
	}
}

// checkPNG verifies that the file is a picture with something on it.
func checkPNG(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	size := img.Bounds().Size()
	if size.X < 1000 || size.Y < 400 {
		t.Errorf("the picture is %v", size)
	}
	colors := map[[3]uint32]bool{}
	for x := range size.X {
		for y := range size.Y {
			r, g, b, _ := img.At(x, y).RGBA()
			colors[[3]uint32{r, g, b}] = true
		}
	}
	if len(colors) < 10 {
		t.Errorf("the picture has %d colours only", len(colors))
	}
}

var outside = regexp.MustCompile(`(?i)https?://|src\s*=|href\s*=|@import|url\(`)

// checkHTML verifies that a page has what it should and needs nothing else.
func checkHTML(t *testing.T, path string, wants ...string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if at := outside.FindString(text); at != "" {
		t.Errorf("the page refers to something outside of it: %q", at)
	}
	for _, want := range append(wants, "<!doctype html>", "<svg", "<table>", "</html>", "prefers-color-scheme: dark") {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in the page", want)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "ZgotmplZ") {
		t.Error("the page has figures that are none")
	}
}

// What goes to standard output is the file alone; people read the report on
// standard error.
func TestFilesOnStandardOutput(t *testing.T) {
	code, out, errs := command(t.Context(), append(tinyRun, "--csv", "-")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	checkRows(t, out, 3, true)
	if !strings.Contains(errs, "In the end 0 B live") {
		t.Errorf("standard error has no report: %q", errs)
	}

	code, out, errs = command(t.Context(), append([]string{"report", "list", "--backend", "freehold", "--html", "-"}, tinyTour...)...)
	if code != 0 || !strings.HasPrefix(out, "<!doctype html>") || !strings.Contains(errs, "Report: standard output") ||
		!strings.HasPrefix(errs, "lab report: starting 1 measurement, in a process of its own\n") {
		t.Errorf("demo --html -: exit code %d, output %.40q, errors %q", code, out, errs)
	}
}

func TestMemtestOutOfMemory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.csv")
	page := filepath.Join(dir, "a.html")
	code, out, errs := command(t.Context(), append(tinyRun, "--limit", "12MiB", "--csv", file, "--html", page)...)
	if code != cli.Failed {
		t.Errorf("exit code %d, want %d", code, cli.Failed)
	}
	if !strings.Contains(errs, "stopped, out of memory: in cycle 1, rise, ") {
		t.Errorf("the error is %q", errs)
	}
	if !strings.Contains(out, "Stopped after 0 full cycles") {
		t.Errorf("the result is %q", out)
	}
	checkCSV(t, file, 0, false)
	checkHTML(t, page, "Stopped after 0 full cycles")
}

// Without the time to settle nothing is said to have settled.
func TestMemtestClaimsNoSettling(t *testing.T) {
	for settle, settled := range map[string]bool{"0s": false, "1ms": false, "1100ms": true} {
		if settled && testing.Short() {
			continue
		}
		code, out, errs := command(t.Context(), append(tinyRun, "--cycles", "1", "--settle", settle)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		if strings.Contains(out, "Settled, at most ") != settled || strings.Contains(out, "no time to go back") == settled {
			t.Errorf("--settle %s says:\n%s", settle, out)
		}
	}
	r := memtestReport{kind: goBackend} // which has no decay
	if r.settled() {
		t.Error("no time is said to be enough where nobody knows the decay")
	}
}

func TestMemtestInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.csv")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // as SIGINT does, once two cycles are on file
		for ctx.Err() == nil {
			if data, _ := os.ReadFile(file); bytes.Count(data, []byte("\n")) >= 3 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	args := append(tinyRun, "--cycles", "1000000", "--csv", file)
	code, out, errs := command(ctx, args...)
	if code != cli.Interrupted {
		t.Errorf("exit code %d, want %d", code, cli.Interrupted)
	}
	if !strings.Contains(errs, "interrupted") || !strings.Contains(out, "Interrupted after") || !strings.Contains(out, "rise") {
		t.Errorf("printed %q and %q", out, errs)
	}
}

func TestMemtestPlan(t *testing.T) {
	total, _ := machineMemory()
	low, gib, twice := cli.Size(0), cli.Size(1<<30), cli.Size(2*total)
	one, two := 1, 2
	tests := []struct {
		name string
		m    memtestCommand
		want load
	}{
		{"defaults", memtestCommand{Goroutines: &one},
			load{High: total / 2, Low: total / 2 / 16, Goroutines: 1}},
		{"low is a sixteenth", memtestCommand{High: &gib, Goroutines: &two},
			load{High: 1 << 30, Low: 1 << 26, Goroutines: 2}},
		{"low may be none", memtestCommand{High: &gib, Low: &low, Goroutines: &two},
			load{High: 1 << 30, Low: 0, Goroutines: 2}},
		{"forced", memtestCommand{High: &twice, Low: &low, Goroutines: &two, Force: true},
			load{High: 2 * total, Goroutines: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.m.Backend, tt.m.Sizes, tt.m.Cycles, tt.m.Seed = "freehold", "big", 3, 9
			tt.want.Sizes, tt.want.Cycles, tt.want.Seed = "big", 3, 9
			got, kind, err := tt.m.plan()
			if err != nil || got != tt.want || kind.name != "freehold" {
				t.Errorf("plan is %+v, %s, %v; want %+v", got, kind.name, err, tt.want)
			}
		})
	}
}

func TestWrongFlagsLoseNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "precious.csv")
	if err := os.WriteFile(file, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, _ := command(t.Context(), append(tinyRun, "--csv", file, "--png", filepath.Join(file, "below.png"))...)
	if data, _ := os.ReadFile(file); code != cli.Misused || string(data) != "precious" {
		t.Errorf("exit code %d, and the file is %q now", code, data)
	}
}

func TestOutFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	f, err := openOut("--a", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a long first text", "short"} {
		if err := f.write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "short" {
		t.Errorf("the file holds %q, want the last write alone", data)
	}

	unused := filepath.Join(t.TempDir(), "b")
	f, err = openOut("--b", unused, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(unused); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file without contents was left: %v", err)
	}

	var piped bytes.Buffer
	f, err = openOut("--c", stdoutPath, &piped)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"head\n", "head\nrow\n", "head\nrow\n"} {
		if err := f.write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.close(); err != nil || piped.String() != "head\nrow\n" {
		t.Errorf("standard output got %q, %v, want each row once", piped.String(), err)
	}

	var none *outFile
	if none.write([]byte("x")) != nil || none.close() != nil {
		t.Error("a flag that was not given takes no writes, and no errors")
	}
}
