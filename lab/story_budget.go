package main

import (
	"context"
	"encoding/json"
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/report"
	"github.com/freehold-go/freehold/lab/wire"
)

// budgetStory is a container's limit with and without a budget.
type budgetStory struct{}

// boxFlags are its flags.
type boxFlags struct {
	Limits []cli.Size `default:"512MiB" placeholder:"SIZE" help:"Memory limits of the story budget. Default: ${default}."`
	Shares []int      `default:"50,80" placeholder:"N" help:"Shares of off-heap memory in them, in percent of the limit. Default: ${default}."`
	Runs   int        `default:"1" help:"How often each of its loads runs."`
	With   nameList   `placeholder:"NAME,..." help:"How they keep to the limit: default (Go's defaults), limit (GOMEMLIMIT), budget. Default: all."`
	Box    string     `default:"cgroup" enum:"cgroup,none" help:"What limits them: a control group of Linux (cgroup), or nothing (none: peaks are measured, nothing is killed)."`
	GoLive *cli.Size  `placeholder:"SIZE" help:"Their live Go heap. Default: a quarter of what the off-heap share leaves, 64MiB at most."`

	Rounds   int           `hidden:"" default:"3"`     // of a load in a box
	Hold     time.Duration `hidden:"" default:"300ms"` // within a round
	Deadline time.Duration `hidden:"" default:"2m"`    // of a run
}

// boxes turns the flags into settings.
func (c *boxFlags) boxes() (load.Boxes, error) {
	s := load.Boxes{Kind: c.Box, Shares: c.Shares, Runs: c.Runs, Rounds: c.Rounds, Hold: c.Hold, Deadline: c.Deadline}
	for _, limit := range c.Limits {
		s.Limits = append(s.Limits, int64(limit))
	}
	if c.GoLive != nil {
		s.Live = int64(*c.GoLive)
	}
	names := []string{"default", "limit", "budget"}
	with, err := c.With.of("--with", names)
	if err != nil {
		return s, err
	}
	for _, name := range with {
		s.Modes = append(s.Modes, load.BoxModes[slices.Index(names, name)])
	}
	return s, s.Check()
}

func (budgetStory) name() string { return "budget" }

func (budgetStory) subjects() (all, usual []string) {
	return []string{"freehold"}, []string{"freehold"}
}

func (budgetStory) measurements(set settings) int { return len(set.Boxes.All()) }

// measure has a run, as JSON, for a subject.
func (budgetStory) measure(ctx context.Context, set settings, text string, tell wire.Writer) (any, error) {
	var r load.BoxRun
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, err
	}
	o, err := set.Boxes.Run(ctx, r, tell)
	if o == nil {
		return nil, err
	}
	return o, err
}

// A boxResult is a run and its outcome.
type boxResult struct {
	run load.BoxRun
	load.BoxOutcome
}

func (b budgetStory) tell(ctx context.Context, r *reporter) (sec report.Section, csv []byte, err error) {
	set := r.set.Boxes
	var results []boxResult
	var names []string
	var keys [][]string
	var figures []any
	for _, run := range set.All() {
		res := boxResult{run: run}
		text, err := json.Marshal(run)
		if err != nil {
			return sec, nil, err
		}
		name := fmt.Sprintf("%s, %d%%, %s", cli.Bytes(run.Limit), run.Share, run.Mode)
		if err := r.measure(ctx, b, string(text), name, nil, &res.BoxOutcome); err != nil {
			return sec, nil, err
		}
		results, names, figures = append(results, res), append(names, name), append(figures, res.BoxOutcome)
		keys = append(keys, []string{strconv.FormatInt(run.Limit, 10), strconv.Itoa(run.Share), run.Mode, strconv.Itoa(run.Run)})
	}
	first := load.BoxRun{Limit: set.Limits[0], Share: set.Shares[0]}
	sec = report.Section{
		Title:  "A memory limit",
		Why:    "A container that takes more memory than its limit is killed. GOMEMLIMIT keeps Go's heap within it, but does not count off-heap memory. A budget counts both.",
		Result: boxFinding(results), Charts: boxCharts(results), Grids: []report.Grid{report.Rows("limit, off-heap, with", names, figures)},
		Notes: []string{
			"Each run was in a control group of its own with the limit, without swap.",
			fmt.Sprintf("Goroutines replace nodes of a table on the Go heap and compute with them, while off-heap blocks are allocated up to the share, half of them freed, and allocated again. At %s and %d%% the Go heap has %s live.", cli.Bytes(first.Limit), first.Share, cli.Bytes(set.GoLive(first))),
			load.BoxLimit + ": GOGC=off and nine tenths of the limit. " + load.BoxBudget + ": budget.Start(nil).",
			"The peak is resident memory without pages of files. Done is how much of its load a run did. Nodes, M/s: millions of nodes replaced a second.",
		},
	}
	if set.Kind == load.BoxNone {
		sec.Notes[0] = "There was no box: nothing is killed, and a peak above the limit is shown as over."
	}
	if slices.ContainsFunc(results, func(r boxResult) bool { return r.Result == load.BoxStruck }) {
		sec.Notes = append(sec.Notes, "A run that was struck was killed, but not for its limit: the machine may have no memory left.")
	}
	return sec, report.CSV([]string{"limit", "share_percent", "with", "run"}, keys, figures, load.BoxOutcome{}), nil
}

// boxFinding is what the runs show, in a sentence or two.
func boxFinding(results []boxResult) string {
	text := ""
	for _, mode := range load.BoxModes {
		runs, finished, worst := 0, 0, 0.0
		for _, r := range results {
			if r.run.Mode != mode {
				continue
			}
			runs++
			if r.Result == load.BoxFinished {
				finished++
			}
			worst = max(worst, float64(r.Peak)/float64(r.run.Limit))
		}
		if runs > 0 {
			text += fmt.Sprintf("With %s, %d of %s finished; the peak was %s%% of the limit. ", boxPhrase(mode), finished, cli.Plural(runs, "run"), report.Percent(worst))
		}
	}
	return text + boxPrice(results)
}

// boxPrice is what a budget costs: beside another mode over the runs that finished with both,
// or by itself if there are none.
func boxPrice(results []boxResult) (text string) {
	finished := map[load.BoxRun]boxResult{}
	for _, r := range results {
		if r.Result == load.BoxFinished || r.Result == load.BoxOver {
			finished[r.run] = r
		}
	}
	var seconds, share span
	for run, r := range finished {
		if run.Mode == load.BoxBudget {
			seconds.add(r.Seconds)
			share.add(r.Collector)
		}
	}
	for _, other := range load.BoxModes[:len(load.BoxModes)-1] {
		var times, ours, theirs span
		for run, r := range finished {
			run.Mode = load.BoxBudget
			b, both := finished[run]
			if r.run.Mode != other || !both || r.Seconds == 0 {
				continue
			}
			times.add(b.Seconds / r.Seconds)
			ours.add(b.Collector)
			theirs.add(r.Collector)
		}
		if times.n > 0 {
			text += fmt.Sprintf("Where both finished, a budget took %s times as long as %s; the collector took %s%% of the processors' time with it, and %s%% with %s. ",
				times.text(report.Figure), other, ours.text(report.Percent), theirs.text(report.Percent), other)
		}
	}
	if text == "" && seconds.n > 0 {
		text = fmt.Sprintf("With a budget a run took %s s, and the collector %s%% of the processors' time. ", seconds.text(report.Figure), share.text(report.Percent))
	}
	return text
}

// boxPhrase is a mode within a sentence.
func boxPhrase(mode string) string {
	if mode == load.BoxBudget {
		return "a " + mode
	}
	return mode
}

// A span is the smallest and the largest of n values.
type span struct {
	low, high float64
	n         int
}

func (s *span) add(v float64) {
	if s.n == 0 {
		s.low, s.high = v, v
	}
	s.low, s.high, s.n = min(s.low, v), max(s.high, v), s.n+1
}

func (s *span) text(written func(float64) string) string {
	low, high := written(s.low), written(s.high)
	if low == high {
		return low
	}
	return low + " to " + high
}

// boxCharts are the first run of each kind, over time.
func boxCharts(results []boxResult) (charts []report.Chart) {
	for _, r := range results {
		if r.run.Run != 1 || len(r.Samples) == 0 {
			continue
		}
		over := func(name string, c color.Color, fill bool, value func(load.BoxSample) int64) report.Line {
			l := report.Line{Name: name, Color: c, Fill: fill}
			for _, x := range r.Samples {
				l.Points = append(l.Points, plotter.XY{X: x.Seconds, Y: float64(value(x))})
			}
			return l
		}
		c := report.Chart{
			Title: fmt.Sprintf("%s, %d%% off-heap, with %s: %s", cli.Bytes(r.run.Limit), r.run.Share, r.run.Mode, r.Result),
			XMax:  longestBoxRun(results, r.run),
			YMax:  float64(r.run.Limit) * 1.1,
			Lines: []report.Line{
				over("Go heap", report.Theirs, true, func(x load.BoxSample) int64 { return x.Go }),
				over("off-heap", report.Ours, true, func(x load.BoxSample) int64 { return x.OffHeap }),
				over("Go heap + off-heap", report.Ink, false, func(x load.BoxSample) int64 { return x.Go + x.OffHeap }),
			},
		}
		if r.run.Mode != load.BoxDefault { // which has none
			c.Lines = append(c.Lines, over("GOMEMLIMIT as set", report.Pool, false, func(x load.BoxSample) int64 { return x.Limit }))
		}
		limit := float64(r.run.Limit)
		c.Lines = append(c.Lines, report.Line{Name: "container's limit", Color: report.Jemalloc, Points: plotter.XYs{{X: 0, Y: limit}, {X: c.XMax, Y: limit}}})
		charts = append(charts, c)
	}
	return charts
}

// longestBoxRun returns the seconds of the longest first run of a limit and share.
func longestBoxRun(results []boxResult, of load.BoxRun) (longest float64) {
	for _, r := range results {
		if r.run.Limit == of.Limit && r.run.Share == of.Share && r.run.Run == 1 && len(r.Samples) > 0 {
			longest = max(longest, r.Samples[len(r.Samples)-1].Seconds)
		}
	}
	return longest
}
