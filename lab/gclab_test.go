package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tinyLab is a gclab that takes no time.
var tinyLab = []string{"gclab", "--live", "1MiB", "--time", "20ms", "--workers", "2", "--array", "64KiB", "--headroom", "256MiB", "--reserve", "1MiB"}

func tinyLabWith(args ...string) []string { return append(slices.Clone(tinyLab), args...) }

// labRows verifies that the text is a table with a row per run, and returns the rows
// without the head.
func labRows(t *testing.T, text string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll() // an error if rows differ in length
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 || rows[0][0] != "data" || rows[0][4] != "outcome" || rows[0][len(rows[0])-1] != "load_s" {
		t.Fatalf("the head is wrong: %q", text)
	}
	return rows[1:]
}

func TestGCLab(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	code, out, errs := command(t.Context(), tinyLabWith("--csv", path("a.csv"), "--png", path("a.png"), "--html", path("a.html"))...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	runs := labRuns(shapeNames(), memoryNames(), tunings)
	wants := []string{"lab gclab: starting " + cli.Plural(len(runs), "measurement") + ", each in a process", "1.00 MiB live; 2 workers", "collector, % CPU", "worst turn, ms", "65,536"}
	for _, s := range shapes {
		wants = append(wants, shapeTitle(s), shapeTitle(s)+", 1.00 MiB live, default: on the Go heap ", shapeTitle(s)+", 1.00 MiB live, limit: on the Go heap ", s.stores[0].about)
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	checkPlain(t, out+errs)
	data, err := os.ReadFile(path("a.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := labRows(t, string(data))
	if len(rows) != len(runs) {
		t.Fatalf("%d rows, want %d", len(rows), len(runs))
	}
	for i, row := range rows {
		if name := strings.Join(row[:3], "/"); name != runs[i].name() || row[4] != "measured" || slices.Contains(row, "") {
			t.Fatalf("row %d is %v, want one of %s", i, row, runs[i].name())
		}
		checkLabRow(t, runs[i], row)
	}
	checkPNG(t, path("a.png"))
	checkHTML(t, path("a.html"), "What live data costs the collector", "freehold, limit", "var(--theirs-pale)", "GOMEMLIMIT", "Worst turn")
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "   ") {
			checkWidth(t, line, 80)
		}
	}
}

func TestGCLabCommandLine(t *testing.T) {
	tests := []struct {
		args string
		want string
	}{
		{"--data heap", `--data: nothing is called "heap"; there are: ` + strings.Join(shapeNames(), ", ")},
		{"--data=", "--data: a name is missing"},
		{"--backend libc", `--backend: nothing is called "libc"; there are: go, flat, freehold`},
		{"--tuning off", `--tuning: nothing is called "off"; there are: default, limit`},
		{"--live 1KiB", "--live 1.00 KiB is too little: at least 1.00 MiB are needed"},
		{"--live much", `"much" is no size`},
		{"--live", "; see lab gclab --help"},
		{"--live 8000000TiB", "is more than this system can address"},
		{"--live 1000TiB", "array of pointers (Go heap, default) may take 2.93 PiB: "},
		{"--live 1000TiB --tuning limit", "array of pointers (Go heap, limit) may take 1.95 PiB: "},
		{"--reserve 1000TiB", "of which 1000 TiB are to stay so; choose less, or add --force to try"},
		{"--time 0s", "--time 0s: it must be longer than 0"},
		{"--time=-1s", "--time -1s: it must be longer than 0"},
		{"--time soon", "--time"},
		{"--workers 0", "--workers 0: at least one is needed"},
		{"--workers two", "--workers: expected"},
		{"--array 1", "--array 1 B is too little: at least 8.00 KiB are needed"},
		{"--array 7000000TiB", "--array 6.68 EiB is more than this system can address"},
		{"--headroom 1MiB", "--headroom 1.00 MiB is too little: 2 workers with arrays of 64.0 KiB need 32.3 MiB"},
		{"--csv - --html -", "--csv and --html both write -"},
		{"--png /no/such/folder/a.png", "--png: cannot write"},
		{"more", "unexpected argument more"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			code, out, errs := command(t.Context(), tinyLabWith(strings.Fields(tt.args)...)...)
			if code != cli.Misused || out != "" || !strings.Contains(errs, tt.want) {
				t.Errorf("exit code %d, %q and %q, want %q", code, out, errs, tt.want)
			}
		})
	}
}

// checkLabRow verifies the figures of a row.
func checkLabRow(t *testing.T, r labRun, row []string) {
	t.Helper()
	var f []float64
	for _, cell := range row[5:] {
		v, err := strconv.ParseFloat(cell, 64)
		if err != nil || v < 0 {
			t.Fatalf("%s: %q is no figure", r.name(), cell)
		}
		f = append(f, v)
	}
	share, p99, worst, goal, rss, live, offHeap, build, load := f[0], f[3], f[4], f[6], f[7], f[8], f[9], f[10], f[11]
	entries := float64(r.shape.entries(1 << 20))
	if row[3] != strconv.Itoa(int(entries)) || share > 1 || p99 <= 0 || worst < p99 || rss <= 0 || live < 8*entries || build <= 0 || load < 0.02 {
		t.Errorf("%s: %v", r.name(), row)
	}
	off := r.store.memory == "freehold"
	if offHeap > 0 != off || off && (offHeap < 8*entries || !raceBuild && live > offHeap+4<<20) {
		t.Errorf("%s: of %.0f bytes, %.0f are off-heap", r.name(), live, offHeap)
	}
	const aboveDefault = 128 << 20 // of little that is live
	if limited := r.tuning == tuningLimit; limited != (goal > aboveDefault) {
		t.Errorf("%s: the goal is %.0f", r.name(), goal)
	}
}

// A run that is refused is in the table, and the others are measured.
func TestGCLabRefusesSome(t *testing.T) {
	code, out, errs := command(t.Context(), tinyLabWith("--data", "array", "--backend", "go", "--headroom", "1000TiB", "--csv", "-")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	rows := labRows(t, out)
	if len(rows) != 2 || rows[0][4] != "measured" || rows[1][4] != "refused" || rows[1][5] != "" {
		t.Errorf("the rows are %v", rows)
	}
	if !strings.Contains(errs, "refused: array of pointers (Go heap, limit) may take 1000 TiB") || !strings.Contains(errs, "on the Go heap ") {
		t.Errorf("the report is:\n%s", errs)
	}
}

// A run that would take the last memory is stopped, and says so.
func TestGCLabStops(t *testing.T) {
	dir := t.TempDir()
	page, png := filepath.Join(dir, "a.html"), filepath.Join(dir, "a.png")
	code, out, errs := command(t.Context(), tinyLabWith("--data", "array", "--reserve", "1000TiB", "--force", "--time", "1h", "--tuning", "default", "--csv", "-", "--html", page, "--png", png)...)
	if code != cli.Failed {
		t.Errorf("exit code %d, want %d", code, cli.Failed)
	}
	for _, want := range []string{
		"lab: stopped, array of pointers, Go heap, default: only ", "freehold, default: only ", "of memory was left, and 1000 TiB are to stay available",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in:\n%s", want, errs)
		}
	}
	rows := labRows(t, out)
	if len(rows) != 3 {
		t.Errorf("the rows are %v", rows)
	}
	for _, row := range rows {
		if row[4] != "stopped" {
			t.Errorf("a row is %v", row)
		}
	}
	checkHTML(t, page, "1000 TiB are to stay available")
	if _, err := os.Stat(png); err != nil {
		t.Error(err)
	}
}

func TestGCLabInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.csv")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // as SIGINT does, once a run is on file
		for ctx.Err() == nil {
			if data, _ := os.ReadFile(file); bytes.Count(data, []byte("\n")) >= 2 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, out, errs := command(ctx, tinyLabWith("--csv", file)...)
	if code != cli.Interrupted {
		t.Errorf("exit code %d, want %d", code, cli.Interrupted)
	}
	if !strings.Contains(errs, "interrupted") || !strings.Contains(out, "Interrupted after ") || !strings.Contains(out, "worst turn") {
		t.Errorf("printed %q and %q", out, errs)
	}
}

func TestGCLabOfOneMemory(t *testing.T) {
	for memory, want := range map[string]string{
		"go": "live, default: on the Go heap ", "flat": "live, default: there without pointers ", "freehold": "live, default: on freehold ",
	} {
		code, out, errs := command(t.Context(), tinyLabWith("--data", "array", "--backend", memory, "--tuning", "default")...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s, the report is:\n%s", memory, code, errs, out)
		}
	}
}

// Memories are compared under the same settings of the collector, in the demo too.
func TestLabResult(t *testing.T) {
	all := gcStory{}.runs(settings{})
	if want := labRuns([]string{"array"}, memoryNames(), tunings); len(all) != len(want) {
		t.Errorf("the demo has %d runs, want %d", len(all), len(want))
	}
	var outcomes []labOutcome
	for i, r := range all {
		outcomes = append(outcomes, labOutcome{run: r, figures: labFigures{Seconds: 1, Collector: float64(i+1) / 100, Worst: 10 * float64(i+1), Arrays: 100 * float64(i+1)}})
	}
	const want = "Array of pointers, 1.00 GiB live, default: on the Go heap 1.0% of the processors' time go to the collector, the worst turn takes 10.0 ms, " +
		"and workers fill 100 arrays a second; there without pointers 3.0%, 30.0 ms and 300; on freehold 5.0%, 50.0 ms and 500. " +
		"Array of pointers, 1.00 GiB live, limit: on the Go heap 2.0% of the processors' time go to the collector, the worst turn takes 20.0 ms, " +
		"and workers fill 200 arrays a second; there without pointers 4.0%, 40.0 ms and 400; on freehold 6.0%, 60.0 ms and 600."
	if got := labResult(arrayShape, labLoad{Live: 1 << 30}, outcomes); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := labResult(arrayShape, labLoad{Live: 1 << 30}, nil); got != "Array of pointers, 1.00 GiB live: see the table." {
		t.Errorf("nothing was measured: %s", got)
	}
}
