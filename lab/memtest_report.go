package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// memtestReport is a run of memtest as text, CSV, PNG and HTML. All of them
// show as much as was measured.
type memtestReport struct {
	load    load
	kind    backendKind
	limit   int64
	seconds time.Time // when it began
	outcome *outcome
	failure error // why it ended early, nil if it did not
}

// what describes the load in a line.
func (r *memtestReport) what() string {
	text := fmt.Sprintf("%s, %s to %s, %s, %s, seed %d, settle %v",
		r.load.Sizes.text(), cli.Bytes(r.load.Low), cli.Bytes(r.load.High),
		cli.Plural(r.load.Cycles, "cycle"), cli.Plural(r.load.Goroutines, "goroutine"), r.load.Seed, r.load.Settle)
	if r.limit > 0 {
		text += ", limit " + cli.Bytes(r.limit)
	}
	return text
}

// cycles is the table with a row per finished cycle.
func (r *memtestReport) cycles() grid {
	g := grid{Head: []string{"cycle", "peak RSS", "after fall", "after settle", "live", "resident per live", "rise s", "fall s", "total s"}}
	for _, t := range r.outcome.Teeth {
		g.add(strconv.Itoa(t.Cycle), cli.Bytes(t.PeakRSS), cli.Bytes(t.AfterFall), cli.Bytes(t.AfterSettle), cli.Bytes(t.Live),
			ratio(t.fragmentation(r.outcome.Start)), seconds(t.Rise), seconds(t.Fall), seconds(t.took()))
	}
	return g
}

// ends is the table of resident memory before the load and after it.
func (r *memtestReport) ends() grid {
	g := grid{Head: []string{"everything freed", "RSS"}}
	g.add("at the start", cli.Bytes(r.outcome.Start))
	if e := r.outcome.End; e != nil {
		g.add("right after", cli.Bytes(e.AfterFall))
		g.add("after settle", cli.Bytes(e.AfterSettle))
		g.add("after Trim", cli.Bytes(e.AfterTrim))
	}
	return g
}

// result is the finding in a sentence.
func (r *memtestReport) result() string {
	o := r.outcome
	if r.failure != nil {
		if errors.Is(r.failure, context.Canceled) {
			return fmt.Sprintf("Interrupted after %s.", cli.Plural(len(o.Teeth), "full cycle"))
		}
		return fmt.Sprintf("Stopped after %s: %v.", cli.Plural(len(o.Teeth), "full cycle"), r.failure)
	}
	worst := 0.0
	for _, t := range o.Teeth {
		worst = max(worst, t.fragmentation(o.Start))
	}
	text := humanize.Comma(o.Chunks) + " chunks, every one checked before it was freed."
	if worst > 0 {
		when := "Settled"
		if !r.settled() {
			when = "After a fall"
		}
		text += fmt.Sprintf(" %s, at most %s resident for each live byte.", when, ratio(worst))
	}
	return text + fmt.Sprintf(" In the end %s live and %s more resident than at the start.",
		cli.Bytes(o.End.Live), cli.Bytes(max(0, o.End.AfterTrim-o.Start)))
}

// settled reports whether memory had the time to go back.
func (r *memtestReport) settled() bool { return r.load.Settle > 0 && r.load.Settle >= r.kind.decay }

func (r *memtestReport) notes() []string {
	notes := []string{
		"RSS is the whole process's resident memory.",
		fmt.Sprintf("The table of chunks, %s, is made before the start and is part of every RSS.", cli.Bytes(r.outcome.Table)),
		"resident per live, the fragmentation = (RSS after settle − RSS at the start) / live; live counts the bytes asked for.",
		"Chunks are freed whole, so each goroutine's fall ends up to one chunk below its part of --low.",
		r.kind.about + ".",
	}
	if !r.settled() {
		note := fmt.Sprintf("A settle of %v gives memory no time to go back", r.load.Settle)
		if r.kind.decay > 0 {
			note += fmt.Sprintf(": the decay is %v", r.kind.decay)
		}
		notes = append(notes, note+".")
	}
	return notes
}

// printHead says what is about to run.
func (r *memtestReport) printHead(w io.Writer) {
	fmt.Fprintln(w, cli.Strong(w, fmt.Sprintf("lab memtest: %s, preparing %s", r.kind.name, cli.Plural(r.load.Cycles, "cycle"))))
	fmt.Fprintln(w, wrapped(w, "", machineText()))
	fmt.Fprintln(w, wrapped(w, "", r.what()))
}

// printResult writes the tables.
func (r *memtestReport) printResult(w io.Writer) {
	fmt.Fprintln(w)
	if g := r.cycles(); len(g.Rows) > 0 {
		g.print(w)
		fmt.Fprintln(w)
	}
	ends := r.ends()
	ends.print(w)
	fmt.Fprintln(w)
	fmt.Fprintln(w, cli.Strong(w, wrapped(w, "", r.result())))
	for _, n := range r.notes() {
		fmt.Fprintln(w, wrapped(w, "- ", n))
	}
}

// write writes the files that were asked for.
func (r *memtestReport) write(files outFiles) error {
	return errors.Join(
		files["--csv"].write(r.csv()),
		files.render("--png", func() ([]byte, error) { c := r.chart(); return c.png() }),
		files.render("--html", func() ([]byte, error) { return r.page().html() }),
	)
}

// csv is a row per finished cycle and, if it came that far, a row "end" for
// when everything is freed. Sizes are bytes; what does not apply is empty.
func (r *memtestReport) csv() []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	secs := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
	o := r.outcome
	_ = w.Write([]string{
		"backend", "sizes", "cycle", "start_rss", "peak_rss", "fall_rss", "settle_rss", "trim_rss",
		"peak_live", "live", "fragmentation", "rise_s", "fall_s", "settle_s",
	})
	for _, t := range o.Teeth {
		_ = w.Write([]string{
			r.kind.name, string(r.load.Sizes), strconv.Itoa(t.Cycle), number(o.Start), number(t.PeakRSS), number(t.AfterFall), number(t.AfterSettle), "",
			number(t.PeakLive), number(t.Live), strconv.FormatFloat(t.fragmentation(o.Start), 'f', 4, 64), secs(t.Rise), secs(t.Fall), secs(t.Settle),
		})
	}
	if e := o.End; e != nil {
		_ = w.Write([]string{
			r.kind.name, string(r.load.Sizes), "end", number(o.Start), "", number(e.AfterFall), number(e.AfterSettle), number(e.AfterTrim),
			"", number(e.Live), "", "", secs(e.Fall), secs(e.Settle),
		})
	}
	w.Flush()
	return out.Bytes()
}

// chart is resident and live memory over time.
func (r *memtestReport) chart() chart {
	return sawtoothChart(r.kind.name, r.outcome)
}

// sawtoothChart draws what a sawtooth measured on a backend.
func sawtoothChart(name string, o *outcome) chart {
	return chart{
		Title: titleOf(name) + ": resident and live memory over time",
		Lines: []line{
			overTime("live", colorOf("live"), true, o.Samples, func(s sample) int64 { return s.Live }),
			overTime("resident", colorOf(name), false, o.Samples, func(s sample) int64 { return s.RSS }),
		},
	}
}

func (r *memtestReport) page() *page {
	return &page{
		Title: "lab memtest: " + r.kind.name,
		Lead:  r.what(),
		Facts: []string{machineText(), version(), r.seconds.Format("2006-01-02 15:04")},
		Sections: []section{{
			Title:  "Does memory come back?",
			Why:    "Each cycle allocates chunks of random size up to the high mark and frees them at random down to the low one. What stays resident beyond the live bytes is what the allocator strands or keeps.",
			Result: r.result(),
			Charts: []chart{r.chart()},
			Grids:  []grid{r.cycles(), r.ends()},
			Notes:  r.notes(),
		}},
	}
}

func ratio(f float64) string {
	if f == 0 {
		return "-"
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) }
