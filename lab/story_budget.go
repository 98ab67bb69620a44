package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/run"
)

// budgetStory is a container's limit with and without a budget.
var budgetStory = story{
	name:    "budget",
	title:   "A memory limit",
	why:     "A container that takes more memory than its limit is killed. GOMEMLIMIT keeps Go's heap within it, but does not count off-heap memory. A budget counts both.",
	figures: load.BoxOutcome{},
	keys:    []string{"limit", "share_percent", "with", "run", "outcome"},
	row:     load.BoxOutcome{},
	trials: func(set settings) (all []*trial) {
		for _, r := range set.Boxes.All() {
			all = append(all, &trial{
				keys:  []string{strconv.FormatInt(int64(r.Limit), 10), strconv.Itoa(r.Share), r.Mode, strconv.Itoa(r.Run)},
				group: fmt.Sprintf("%v, %d%% off-heap, run %d", r.Limit, r.Share, r.Run),
				name:  r.Mode, color: map[string]string{load.BoxDefault: "go", load.BoxLimit: "flat", load.BoxBudget: "freehold"}[r.Mode],
				result: &load.BoxOutcome{BoxRun: r},
			})
		}
		return all
	},
	start: func(ctx context.Context, set settings, t *trial, args []string, on func(run.Message)) error {
		return set.Boxes.Run(ctx, t.result.(*load.BoxOutcome), args, on)
	},
	measure: func(ctx context.Context, set settings, keys []string, tell run.Writer) (any, error) {
		limit, err1 := strconv.Atoi(keys[0])
		share, err2 := strconv.Atoi(keys[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return set.Boxes.Load(ctx, load.BoxRun{Limit: cli.Size(limit), Share: share, Mode: keys[2]}, tell)
	},
	sentence: func(_ settings, group string, measured []*trial) string {
		var all []string
		for _, t := range measured {
			o := t.result.(*load.BoxOutcome)
			all = append(all, fmt.Sprintf("%s after %s s with a peak of %s%% of the limit (%s)", o.Result, report.Figure(o.Seconds), report.Percent(o.OfLimit), t.name))
		}
		return fmt.Sprintf("%s: %s.", group, report.Joined(all))
	},
	notes: func(set settings) []string {
		box := "Each run was in a control group of its own with the limit, without swap. One that was struck was killed, but not for its limit: the machine may have no memory left."
		if set.Boxes.Box == "none" {
			box = "There was no box: nothing is killed, and a peak above the limit is shown as over."
		}
		first := set.Boxes.All()[0]
		return []string{
			box,
			fmt.Sprintf("Goroutines replace nodes of a table on the Go heap and compute with them, while off-heap blocks are allocated up to the share, half of them freed, and allocated again. At %v and %d%% the Go heap has %v live.", first.Limit, first.Share, set.Boxes.LiveIn(first)),
			"default: Go's defaults. limit: GOGC=off, and GOMEMLIMIT at nine tenths of the limit. budget: budget.Start(nil).",
			"The peak is resident memory without pages of files. Done is how much of its load a run did. Nodes, M/s: millions of nodes replaced a second.",
		}
	},
	more: func(_ settings, all []*trial, sec *report.Section) {
		longest := map[string]float64{} // of each table: its charts have the same axes
		for _, t := range all {
			o := t.result.(*load.BoxOutcome)
			for _, x := range o.Samples {
				longest[t.group] = max(longest[t.group], x.Seconds)
			}
		}
		for _, t := range all {
			if o := t.result.(*load.BoxOutcome); o.Run == 1 && len(o.Samples) > 0 {
				sec.Charts = append(sec.Charts, boxChart(t, o, longest[t.group]))
			}
		}
	},
}

// boxChart is a run over time.
func boxChart(t *trial, o *load.BoxOutcome, seconds float64) report.Chart {
	limit := float64(o.Limit)
	c := report.Chart{Title: fmt.Sprintf("%s, with %s: %s", t.group, t.name, o.Result), XMax: seconds, YMax: limit * 1.1}
	line := func(name, color string, fill bool, value func(load.BoxSample) int64) {
		l := report.Line{Name: name, Color: color, Fill: fill}
		for _, x := range o.Samples {
			l.Points = append(l.Points, report.Point{X: x.Seconds, Y: float64(value(x))})
		}
		c.Lines = append(c.Lines, l)
	}
	line("Go heap", "go", true, func(x load.BoxSample) int64 { return x.Go })
	line("off-heap", "freehold", true, func(x load.BoxSample) int64 { return x.OffHeap })
	line("Go heap + off-heap", "sum", false, func(x load.BoxSample) int64 { return x.Go + x.OffHeap })
	if o.Mode != load.BoxDefault { // which has none
		line("GOMEMLIMIT as set", "flat", false, func(x load.BoxSample) int64 { return x.Limit })
	}
	c.Lines = append(c.Lines, report.Line{Name: "container's limit", Color: "jemalloc", Points: []report.Point{{X: 0, Y: limit}, {X: seconds, Y: limit}}})
	return c
}

// budgetCommand runs a load in a container's limit.
type budgetCommand struct {
	Load load.Boxes `embed:""`
	outputs
}

func (b *budgetCommand) Run(ctx context.Context, st cli.Streams) error {
	if err := b.Load.Check(); err != nil {
		return err
	}
	return tell(ctx, st, b.outputs, settings{Boxes: b.Load}, report.Page{
		Title: "A memory limit", Lead: "A load on the Go heap and off it, within a limit of memory.",
	}, &budgetStory)
}
