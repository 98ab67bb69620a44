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
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/subject"
)

func TestReportInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := command(ctx, tinyMemtest...); code != cli.Interrupted || errs != "lab: interrupted\n" {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

// A fall that leaves nothing live has no bytes for each live one.
func TestSawtoothWithNothingLive(t *testing.T) {
	for ratio, want := range map[float64]string{-1: "keeps up to 1.00 MiB (x).", 1.5: "keeps up to 1.00 MiB, 1.500 for each live byte (x)."} {
		o := &load.SawtoothOutcome{AfterSettle: 1 << 20, Ratio: ratio}
		if got := sawtoothStory.sentence(settings{}, "", []*trial{{name: "x", result: o}}); !strings.HasSuffix(got, want) {
			t.Errorf("ratio %v: %q, want %q at its end", ratio, got, want)
		}
	}
}

func TestMemtest(t *testing.T) {
	for _, name := range subject.Names() {
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
		wants(t, out, name+": 1.00 MiB to 16.0 MiB, 2 goroutines, seed 1", "Sizes: both.", "fragmentation", "after Trim", "live in the end")
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
	code, out, errs := command(t.Context(), with(tinyMemtest, "--limit", "12MiB", "--low", "0", "--csv", file)...)
	if code != cli.Failed || !strings.Contains(errs, "in cycle 1 of 3, rise, ") {
		t.Errorf("exit code %d, %q", code, errs)
	}
	wants(t, out, "0 B to 16.0 MiB", "limit 12.0 MiB")
	if rows := rowsIn(t, file); len(rows) != 1 {
		t.Errorf("the rows are %v", rows)
	}
}

// cancelAfter cancels, as SIGINT does, once a file has a number of lines.
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

func TestGCLab(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.csv")
	out, page := reportOf(t, with(tinyGCLab, "--csv", file)...)
	runs := load.LiveRuns(subject.ShapeNames(), subject.LiveMemories, load.Tunings)
	wants(t, out, "lab: starting "+cli.Plural(len(runs), "measurement"), "1.00 MiB live; 2 workers", "worst turn, ms", "65,536")
	for _, s := range subject.Shapes {
		wants(t, out, upper(s.Title)+", ", " (freehold, default)", " (Go heap, limit)", s.Stores[0].About)
	}
	wants(t, page, "What live data costs the collector", "freehold, limit", `<i class="flat"`, "GOMEMLIMIT")
	rows := rowsIn(t, file)
	if len(rows) != len(runs)+1 {
		t.Fatalf("%d rows, want %d", len(rows), len(runs)+1)
	}
	for i, r := range runs {
		row := rows[i+1]
		if !slices.Equal(row[:4], []string{r.Shape.Name, r.Store.Memory, r.Tuning, "measured"}) {
			t.Fatalf("row %d is %v, want one of %v", i, row, r)
		}
		f := map[string]float64{}
		for j, cell := range row[4:] {
			f[rows[0][4+j]], _ = strconv.ParseFloat(cell, 64)
		}
		entries := float64(r.Shape.Entries(1 << 20))
		if f["collector_share"] > 1 || f["turn_p99_ms"] <= 0 || f["turn_worst_ms"] < f["turn_p99_ms"] ||
			f["peak_rss"] <= 0 || f["live"] < 8*entries || f["build_s"] <= 0 || f["load_s"] < 0.02 {
			t.Errorf("%v", row)
		}
		if known := row[slices.Index(rows[0], "pause_ms")] != ""; known != (f["collections"] > 0) {
			t.Errorf("after %v collections a pause is known: %v", f["collections"], known)
		}
		if off := f["off_heap"]; off > 0 != (r.Store.Memory == "freehold") || off > 0 && off < 8*entries {
			t.Errorf("%v: %.0f bytes are off-heap", row, off)
		}
		const aboveDefault = 400 << 20 // of little that is live, even if collections are late
		if limited := r.Tuning == load.TuningLimit; limited != (f["goal"] > aboveDefault) {
			t.Errorf("%v: the goal is %.0f", row, f["goal"])
		}
	}
}

// A run that is refused is in the table, and the others are measured.
func TestGCLabRefusesSome(t *testing.T) {
	code, out, errs := command(t.Context(), with(tinyGCLab, "--data", "array", "--backend", "go", "--headroom", "1000TiB", "--csv", "-")...)
	rows := rowsOf(t, out)
	if code != 0 || len(rows) != 3 || rows[1][3] != "measured" || rows[2][3] != "refused" || rows[2][4] != "" {
		t.Errorf("exit code %d, the rows are %v", code, rows)
	}
	wants(t, errs, "refused: array of pointers (Go heap, limit) may take 1000 TiB", "(Go heap, default)")
}

// A run that would take the last memory is stopped, and says so. So does the next one.
func TestGCLabStops(t *testing.T) {
	page := filepath.Join(t.TempDir(), "a.html")
	code, out, errs := command(t.Context(), with(tinyGCLab, "--data", "array", "--reserve", "1000TiB", "--force", "--time", "1h", "--tuning", "default", "--csv", "-", "--html", page)...)
	rows := rowsOf(t, out)
	if code != cli.Failed || len(rows) != 4 || rows[1][3] != "stopped" || rows[3][3] != "stopped" {
		t.Errorf("exit code %d, rows %v", code, rows)
	}
	wants(t, errs, "lab: stopped, gc, Go heap, default: only ", "freehold, default: only ", "of memory was left, and 1000 TiB are to stay available")
	checkPage(t, page)
}

// What is not known has no figure.
func TestLiveSentence(t *testing.T) {
	all := []*trial{
		{name: "a", result: &load.Collection{Cycles: 3, Collector: 0.02, Worst: 10, Arrays: 100}},
		{name: "b", result: &load.Collection{Collector: -1, Pause: -1, Worst: 20, Arrays: 200}},
	}
	const want = "2.0%, 10.0 ms and 100 (a); no collection, 20.0 ms and 200 (b)."
	if got := liveStory.sentence(settings{}, "array", all); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestBudgetStory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.csv")
	out, page := reportOf(t, with(tinyBox, "--csv", file)...)
	wants(t, out, "starting 3 measurements", "There was no box", "At 128 MiB and 30% the Go heap has 1 B live")
	wants(t, page, "A memory limit", "off-heap", "<svg")
	rows := rowsIn(t, file)
	if len(rows) != 4 {
		t.Fatalf("the rows are %v", rows)
	}
	for i, mode := range []string{load.BoxDefault, load.BoxLimit, load.BoxBudget} {
		row := rows[i+1]
		if row[0] != "134217728" || row[1] != "30" || row[2] != mode || row[3] != "1" || row[slices.Index(rows[0], "done")] != "1" {
			t.Errorf("%v", row)
		}
	}
}

// The charts of a limit and share have the same axes, and lines for what there is.
func TestBoxCharts(t *testing.T) {
	of := func(group, mode string, run int, seconds ...float64) *trial {
		o := &load.BoxOutcome{BoxRun: load.BoxRun{Limit: 1 << 30, Mode: mode, Run: run}}
		for _, s := range seconds {
			o.Samples = append(o.Samples, load.BoxSample{Seconds: s})
		}
		return &trial{group: group, result: o}
	}
	var sec report.Section
	budgetStory.more(settings{}, []*trial{
		of("a", load.BoxDefault, 1, 0.1, 2), of("a", load.BoxLimit, 1, 1), of("a", load.BoxBudget, 1, 3), of("b", load.BoxBudget, 2, 50),
		of("c", load.BoxDefault, 1, 5), of("c", load.BoxLimit, 1),
	}, &sec)
	if len(sec.Charts) != 4 {
		t.Fatalf("%d charts", len(sec.Charts))
	}
	for i, want := range []struct {
		seconds float64
		lines   int
	}{{3, 4}, {3, 5}, {3, 5}, {5, 4}} {
		if c := sec.Charts[i]; c.XMax != want.seconds || c.YMax != 1.1*(1<<30) || len(c.Lines) != want.lines {
			t.Errorf("%s: up to %v s and %v bytes, %d lines; want %+v", c.Title, c.XMax, c.YMax, len(c.Lines), want)
		}
	}
}
