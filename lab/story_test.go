package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/subject"
)

func TestReport(t *testing.T) {
	out, page := reportOf(t, with(tinyReport, "--backend", strings.Join(subjectNames(), ","))...)
	wants(t, out, "lab report: starting ", "A linked list\n", "A large live heap\n", "Memory that comes back\n", "In short",
		"2,000 nodes of", "off-heap, list", "worst turn, ms", "all freed, after Trim", "With 2,000 nodes live, one collection takes ")
	for _, name := range subjectNames() {
		had, skipped := strings.Contains(out, titleOf(name)), strings.Contains(out, "skipped: "+name+": ")
		if !had && !skipped || skipped && (name == "go" || name == "freehold") {
			t.Errorf("%s: measured %v, skipped %v", name, had, skipped)
		}
	}
	wants(t, page, "<svg", "<table>", "A linked list", "Memory that comes back", "freehold, limit", "var(--theirs-pale)")
}

func TestReportOfOneStory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.csv")
	out, _ := reportOf(t, with(tinyReport, "list", "--backend", "freehold", "--csv", file)...)
	if strings.Contains(out, "libc") || strings.Contains(out, "Memory that comes back") || strings.Contains(out, "Go heap)") {
		t.Errorf("the report of a list on freehold alone says:\n%s", out)
	}
	if rows := rowsIn(t, file); len(rows) != 2 || rows[0][0] != "list" || rows[1][0] != "freehold" {
		t.Errorf("the rows are %v", rows)
	}
	code, out, errs := command(t.Context(), with(tinyReport, "list", "--backend", "freehold", "--html", "-")...)
	if code != 0 || !strings.HasPrefix(out, "<!doctype html>") || !strings.HasPrefix(errs, "lab report: starting 1 measurement, ") {
		t.Errorf("--html -: exit code %d, output %.40q, errors %q", code, out, errs)
	}
}

func TestReportInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := command(ctx, tinyReport...); code != cli.Interrupted || errs != "lab: interrupted\n" {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

func TestMemtest(t *testing.T) {
	for _, name := range subject.KindNames() {
		file := filepath.Join(t.TempDir(), "a.csv")
		// A file that is there already is replaced as a whole.
		if err := os.WriteFile(file, bytes.Repeat([]byte("old,"), 10_000), 0o644); err != nil {
			t.Fatal(err)
		}
		args := with(tinyMemtest, "--backend", name, "--csv", file)
		if code, _, errs := command(t.Context(), args...); code == cli.Misused && strings.Contains(errs, name+": ") {
			continue // it cannot be had here
		}
		out, page := reportOf(t, args...)
		wants(t, out, name+": big and small chunks", "1.00 MiB to 16.0 MiB, 3 cycles, 2 goroutines, seed 1", "fragmentation", "after Trim", "In the end 0 B live")
		if strings.Contains(out, "no time to go back") != (name == "freehold" || name == "jemalloc") {
			t.Errorf("%s has a decay, or has not:\n%s", name, out)
		}
		wants(t, page, "<svg", "Does memory come back?", "resident")
		rows := rowsIn(t, file)
		if len(rows) != 5 || rows[0][2] != "cycle" || rows[4][2] != "end" || rows[4][slices.Index(rows[0], "live")] != "0" {
			t.Errorf("the rows are %v", rows)
		}
	}
}

func TestMemtestOutOfMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.csv")
	code, _, errs := command(t.Context(), with(tinyMemtest, "--limit", "12MiB", "--csv", file)...)
	if code != cli.Failed || !strings.Contains(errs, "in cycle 1, rise, ") {
		t.Errorf("exit code %d, %q", code, errs)
	}
	if rows := rowsIn(t, file); len(rows) != 1 {
		t.Errorf("the rows are %v", rows)
	}
}

// cancelAfter cancels once a file has so many lines, as SIGINT does.
func cancelAfter(ctx context.Context, cancel func(), file string, lines int) {
	for ctx.Err() == nil {
		if data, _ := os.ReadFile(file); bytes.Count(data, []byte("\n")) >= lines {
			cancel()
		}
		time.Sleep(time.Millisecond)
	}
}

func TestInterruptedRunsKeepTheirResults(t *testing.T) {
	for _, args := range [][]string{with(tinyMemtest, "--cycles", "1000000"), tinyGCLab} {
		file := filepath.Join(t.TempDir(), "a.csv")
		ctx, cancel := context.WithCancel(t.Context())
		go cancelAfter(ctx, cancel, file, 3)
		code, out, errs := command(ctx, with(args, "--csv", file)...)
		cancel()
		if code != cli.Interrupted || !strings.Contains(errs, "lab: interrupted") || !strings.Contains(out, "Interrupted after ") {
			t.Errorf("%s: exit code %d, printed %q and %q", args[0], code, out, errs)
		}
		if rows := rowsIn(t, file); len(rows) < 3 {
			t.Errorf("%s: the rows are %v", args[0], rows)
		}
	}
}

func TestMemtestPlan(t *testing.T) {
	low, gib := cli.Size(0), cli.Size(1<<30)
	one, two := 1, 2
	for _, tt := range []struct {
		m    memtestCommand
		want load.Sawtooth
	}{
		{memtestCommand{High: &gib, Goroutines: &two}, load.Sawtooth{High: 1 << 30, Low: 1 << 26, Goroutines: 2}},
		{memtestCommand{High: &gib, Low: &low, Goroutines: &one}, load.Sawtooth{High: 1 << 30, Low: 0, Goroutines: 1}},
	} {
		tt.m.Backend, tt.m.Sizes, tt.m.Cycles, tt.m.Seed = "freehold", "big", 3, 9
		tt.want.Sizes, tt.want.Cycles, tt.want.Seed = "big", 3, 9
		if got, kind, err := tt.m.plan(); err != nil || got.Sawtooth != tt.want || kind.Name != "freehold" {
			t.Errorf("plan is %+v, %s, %v; want %+v", got, kind.Name, err, tt.want)
		}
	}
}

func TestGCLab(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.csv")
	out, page := reportOf(t, with(tinyGCLab, "--csv", file)...)
	runs := load.LiveRuns(shapeNames(), []string{"go", "flat", "freehold"}, load.Tunings)
	wants(t, out, "lab gclab: starting "+cli.Plural(len(runs), "measurement"), "1.00 MiB live; 2 workers", "collector, % CPU", "worst turn, ms", "65,536")
	for _, s := range subject.Shapes {
		wants(t, out, shapeTitle(s)+", 1.00 MiB live, default: on the Go heap ", shapeTitle(s)+", 1.00 MiB live, limit: on the Go heap ", s.Stores[0].About)
	}
	wants(t, page, "What live data costs the collector", "freehold, limit", "var(--theirs-pale)", "GOMEMLIMIT", "Worst turn")
	rows := rowsIn(t, file)
	if len(rows) != len(runs)+1 {
		t.Fatalf("%d rows, want %d", len(rows), len(runs)+1)
	}
	for i, r := range runs {
		row := rows[i+1]
		if strings.Join(row[:3], "/") != r.Name() || row[4] != "measured" || slices.Contains(row, "") {
			t.Fatalf("row %d is %v, want one of %s", i, row, r.Name())
		}
		f := map[string]float64{}
		for j, cell := range row[5:] {
			f[rows[0][5+j]], _ = strconv.ParseFloat(cell, 64)
		}
		entries := float64(r.Shape.Entries(1 << 20))
		if row[3] != strconv.Itoa(int(entries)) || f["collector_share"] > 1 || f["turn_p99_ms"] <= 0 || f["turn_worst_ms"] < f["turn_p99_ms"] ||
			f["peak_rss"] <= 0 || f["live"] < 8*entries || f["build_s"] <= 0 || f["load_s"] < 0.02 {
			t.Errorf("%s: %v", r.Name(), row)
		}
		if off := f["off_heap"]; off > 0 != (r.Store.Memory == "freehold") || off > 0 && off < 8*entries {
			t.Errorf("%s: %.0f bytes are off-heap", r.Name(), off)
		}
		const aboveDefault = 128 << 20 // of little that is live
		if limited := r.Tuning == load.TuningLimit; limited != (f["goal"] > aboveDefault) {
			t.Errorf("%s: the goal is %.0f", r.Name(), f["goal"])
		}
	}
}

// A run that is refused is in the table, and the others are measured.
func TestGCLabRefusesSome(t *testing.T) {
	code, out, errs := command(t.Context(), with(tinyGCLab, "--data", "array", "--backend", "go", "--headroom", "1000TiB", "--csv", "-")...)
	rows := rowsOf(t, out)
	if code != 0 || len(rows) != 3 || rows[1][4] != "measured" || rows[2][4] != "refused" || rows[2][5] != "" {
		t.Errorf("exit code %d, the rows are %v", code, rows)
	}
	wants(t, errs, "refused: array of pointers (Go heap, limit) may take 1000 TiB", "on the Go heap ")
}

// A run that would take the last memory is stopped, and says so.
func TestGCLabStops(t *testing.T) {
	page := filepath.Join(t.TempDir(), "a.html")
	code, out, errs := command(t.Context(), with(tinyGCLab, "--data", "array", "--reserve", "1000TiB", "--force", "--time", "1h", "--tuning", "default", "--csv", "-", "--html", page)...)
	rows := rowsOf(t, out)
	if code != cli.Failed || len(rows) != 4 || rows[1][4] != "stopped" || rows[3][4] != "stopped" {
		t.Errorf("exit code %d, rows %v", code, rows)
	}
	wants(t, errs, "lab: stopped, array of pointers, Go heap, default: only ", "freehold, default: only ", "of memory was left, and 1000 TiB are to stay available")
	checkPage(t, page)
}

// Memories are compared under the same settings of the collector, in the tour too.
func TestLiveResult(t *testing.T) {
	all := liveStory{}.runs(settings{})
	if len(all) != 6 || len(liveStory{}.runs(settings{Subjects: []string{"freehold"}})) != 2 {
		t.Fatalf("the tour has the runs %v", all)
	}
	var outcomes []liveOutcome
	for i, r := range all {
		n := float64(i + 1)
		outcomes = append(outcomes, liveOutcome{run: r, figures: load.Collection{Seconds: 1, Collector: n / 100, Worst: 10 * n, Arrays: 100 * n}})
	}
	const want = "Array of pointers, 1.00 GiB live, default: on the Go heap 1.0% of the processors' time go to the collector, the worst turn takes 10.0 ms, " +
		"and workers fill 100 arrays a second; there without pointers 3.0%, 30.0 ms and 300; on freehold 5.0%, 50.0 ms and 500. " +
		"Array of pointers, 1.00 GiB live, limit: on the Go heap 2.0% of the processors' time go to the collector, the worst turn takes 20.0 ms, " +
		"and workers fill 200 arrays a second; there without pointers 4.0%, 40.0 ms and 400; on freehold 6.0%, 60.0 ms and 600."
	if got := liveResult(subject.Shapes[0], load.Live{Live: 1 << 30}, outcomes); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestBudgetStory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.csv")
	out, page := reportOf(t, with(tinyBox, "--csv", file)...)
	wants(t, out, "starting 3 measurements", "There was no box", "At 128 MiB and 30% the Go heap has 2.00 MiB live")
	wants(t, page, "A memory limit", "off-heap", "<svg")
	rows := rowsIn(t, file)
	if len(rows) != 4 {
		t.Fatalf("the rows are %v", rows)
	}
	for i, mode := range load.BoxModes {
		row := rows[i+1]
		if row[0] != "134217728" || row[1] != "30" || row[2] != mode || row[3] != "1" || row[slices.Index(rows[0], "done")] != "1" {
			t.Errorf("%v", row)
		}
	}
}

// The charts of a limit and share have the same axes, and lines for what there is.
func TestBoxCharts(t *testing.T) {
	result := func(mode string, share, run int, seconds float64) boxResult {
		return boxResult{load.BoxRun{Limit: 1 << 30, Share: share, Mode: mode, Run: run},
			load.BoxOutcome{Result: load.BoxFinished, Samples: []load.BoxSample{{Seconds: 0.1, Limit: 7}, {Seconds: seconds, Limit: 8}}}}
	}
	charts := boxCharts([]boxResult{
		result(load.BoxDefault, 10, 1, 2), result(load.BoxLimit, 10, 1, 1), result(load.BoxBudget, 10, 1, 3), result(load.BoxBudget, 10, 2, 50),
		result(load.BoxDefault, 20, 1, 5), {run: load.BoxRun{Limit: 1 << 30, Share: 20, Mode: load.BoxLimit, Run: 1}},
	})
	if len(charts) != 4 {
		t.Fatalf("%d charts", len(charts))
	}
	for i, want := range []struct {
		seconds float64
		lines   int
	}{{3, 4}, {3, 5}, {3, 5}, {5, 4}} {
		if c := charts[i]; c.XMax != want.seconds || c.YMax != 1.1*(1<<30) || len(c.Lines) != want.lines {
			t.Errorf("%s: up to %v s and %v bytes, %d lines; want %+v", c.Title, c.XMax, c.YMax, len(c.Lines), want)
		}
	}
}

func TestBoxFinding(t *testing.T) {
	result := func(mode string, share int, what string, seconds, collector float64) boxResult {
		return boxResult{load.BoxRun{Limit: 1000, Share: share, Mode: mode, Run: 1}, load.BoxOutcome{Result: what, Peak: 500, Seconds: seconds, Collector: collector}}
	}
	b1, b2, b3 := result(load.BoxBudget, 1, load.BoxFinished, 4, 0.1), result(load.BoxBudget, 2, load.BoxFinished, 6, 0.3), result(load.BoxBudget, 3, load.BoxFinished, 60, 0.9)
	for _, tt := range []struct {
		name    string
		results []boxResult
		want    string
	}{
		{"none", nil, ""},
		{"a budget alone", []boxResult{b1, b2}, "With a budget, 2 of 2 runs finished; the peak was 50.0% of the limit. With a budget a run took 4.00 to 6.00 s, and the collector 10.0 to 30.0% of the processors' time. "},
		{"beside what finished too", []boxResult{
			result(load.BoxDefault, 1, load.BoxFinished, 2, 0.2), result(load.BoxLimit, 1, load.BoxKilled, 1, 0), b1,
			result(load.BoxDefault, 2, load.BoxFinished, 2, 0.2), result(load.BoxLimit, 2, load.BoxFinished, 12, 0), b2,
			result(load.BoxDefault, 3, load.BoxKilled, 1, 0), result(load.BoxLimit, 3, load.BoxGaveUp, 1, 0), b3,
		}, "With Go's defaults, 2 of 3 runs finished; the peak was 50.0% of the limit. With GOMEMLIMIT, 1 of 3 runs finished; the peak was 50.0% of the limit. With a budget, 3 of 3 runs finished; the peak was 50.0% of the limit. " +
			"Where both finished, a budget took 2.00 to 3.00 times as long as Go's defaults; the collector took 10.0 to 30.0% of the processors' time with it, and 20.0% with Go's defaults. " +
			"Where both finished, a budget took 0.50 times as long as GOMEMLIMIT; the collector took 30.0% of the processors' time with it, and 0.0% with GOMEMLIMIT. "},
		{"no budget", []boxResult{result(load.BoxDefault, 1, load.BoxFinished, 2, 0.2)}, "With Go's defaults, 1 of 1 run finished; the peak was 50.0% of the limit. "},
	} {
		if got := boxFinding(tt.results); got != tt.want {
			t.Errorf("%s:\n%q, want\n%q", tt.name, got, tt.want)
		}
	}
}
