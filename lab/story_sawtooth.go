package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
)

// sawtoothStory is a load that rises and falls on an allocator.
var sawtoothStory = story{
	name:    "sawtooth",
	title:   "Memory that comes back",
	why:     "A service's load rises and falls. Memory that nobody uses should go back to the operating system without a collection having to find it, and without fragments keeping it.",
	figures: load.SawtoothOutcome{},
	keys:    []string{"allocator", "sizes", "cycle", "start_rss"},
	row:     load.Tooth{},
	trials: func(set settings) (all []*trial) {
		l, k := set.Sawtooth, subject.Named(set.Backend)
		t := &trial{
			keys: []string{k.Name}, group: fmt.Sprintf("%s, %v to %v", cli.Plural(l.Cycles, "cycle"), l.Low, l.High),
			name: k.Title, color: k.Name, about: k.About + ".", result: new(load.SawtoothOutcome),
		}
		if l.Settle < k.Decay {
			t.about += fmt.Sprintf(" A settle of %v gives memory no time to go back: the decay is %v.", l.Settle, k.Decay)
		}
		return []*trial{t}
	},
	measure: func(_ context.Context, set settings, keys []string, tell run.Writer) (any, error) {
		a, err := subject.Named(keys[0]).Open(int64(set.Sawtooth.Limit))
		if err != nil {
			return nil, err
		}
		return set.Sawtooth.Run(a, tell)
	},
	sentence: func(set settings, _ string, measured []*trial) string {
		var peaks, kept []string
		for _, t := range measured {
			o := t.result.(*load.SawtoothOutcome)
			peaks = append(peaks, fmt.Sprintf("%s (%s)", cli.Bytes(o.PeakRSS), t.name))
			each := "" // unknown if nothing was live after any fall
			if o.Ratio >= 0 {
				each = fmt.Sprintf(", %.3f for each live byte", o.Ratio)
			}
			kept = append(kept, fmt.Sprintf("%s%s (%s)", cli.Bytes(o.AfterSettle), each, t.name))
		}
		return fmt.Sprintf("A load that rises to %v peaks at %s, resident. Back at %v it keeps up to %s.",
			set.Sawtooth.High, report.Joined(peaks), set.Sawtooth.Low, report.Joined(kept))
	},
	notes: func(set settings) []string {
		return []string{
			fmt.Sprintf("Sizes: %s. Small chunks have 16 B to 64 KiB, big ones 16 B to 4 MiB; both have half of the bytes each. %v idle after each fall.", set.Sawtooth.Sizes, set.Sawtooth.Settle),
			"Resident, or RSS, is the whole process's memory. Live counts the bytes asked for.",
			"resident per live, the fragmentation = (RSS after settle − RSS at the start) / live.",
			"Chunks are freed whole, so each goroutine's fall ends up to one chunk below its part of the low mark.",
		}
	},
	rows: func(set settings, t *trial) (rows [][]string) {
		o := t.result.(*load.SawtoothOutcome)
		for i, tooth := range o.Teeth {
			key := []string{t.keys[0], string(set.Sawtooth.Sizes), cycleName(set, i), strconv.FormatInt(o.Start, 10)}
			rows = append(rows, append(key, report.Values(tooth, tooth)...))
		}
		return rows
	},
	more: func(set settings, all []*trial, sec *report.Section) {
		top := 0.0
		for _, t := range all {
			o := t.result.(*load.SawtoothOutcome)
			live := report.Line{Name: "live", Color: "live", Fill: true}
			resident := report.Line{Name: "resident", Color: t.color}
			for _, x := range o.Samples {
				live.Points = append(live.Points, report.Point{X: x.Seconds, Y: float64(x.Live)})
				resident.Points = append(resident.Points, report.Point{X: x.Seconds, Y: float64(x.RSS)})
				top = max(top, float64(x.RSS))
			}
			if len(o.Samples) > 0 {
				sec.Charts = append(sec.Charts, report.Chart{Title: t.name + ": resident and live memory over time", Lines: []report.Line{live, resident}})
			}
		}
		for i := range sec.Charts {
			sec.Charts[i].YMax = top // one scale for all
		}
		if len(all) == 1 {
			teeth := all[0].result.(*load.SawtoothOutcome).Teeth
			var names []string
			for i := range teeth {
				names = append(names, cycleName(set, i))
			}
			sec.Grids = append(sec.Grids, report.Rows("cycle", names, teeth))
		}
	},
}

func cycleName(set settings, i int) string {
	if i == set.Sawtooth.Cycles {
		return "end"
	}
	return strconv.Itoa(i + 1)
}

// memtestCommand runs a sawtooth for as long as the user likes.
type memtestCommand struct {
	Backend string        `default:"freehold" enum:"${kinds}" help:"Allocator under test: ${enum}."`
	Load    load.Sawtooth `embed:""`
	Low     *cli.Size     `placeholder:"SIZE" help:"Live bytes at a cycle's end. Default: a sixteenth of --high."`
	Force   bool          `help:"Run although --high is more than the memory."`

	outputs
}

// plan turns the flags into settings, or returns an error.
func (m *memtestCommand) plan() (settings, error) {
	l := m.Load
	if l.Low = l.High / 16; m.Low != nil {
		l.Low = *m.Low
	}
	most := load.PartOfMemory(1)
	if m.Force {
		most = l.High
	}
	err := cmp.Or(l.Check(), load.Between("--high", l.High, 0, most))
	if l.Limit > 0 && m.Backend != "freehold" {
		err = cli.Usagef("--limit: the allocator %s has no hard limit", m.Backend)
	}
	return settings{Sawtooth: l, Backend: m.Backend}, err
}

func (m *memtestCommand) Run(ctx context.Context, st cli.Streams) error {
	set, err := m.plan()
	if err != nil {
		return err
	}
	l := set.Sawtooth
	what := fmt.Sprintf("%s: %v to %v, %s, seed %d", m.Backend, l.Low, l.High, cli.Plural(l.Goroutines, "goroutine"), l.Seed)
	if l.Limit > 0 {
		what += fmt.Sprintf(", limit %v", l.Limit)
	}
	if _, available := sysmem.Memory(); available > 0 && int64(l.High) > available/10*9 {
		fmt.Fprintf(st.Err, "lab: warning: only %s of memory is available now; the system may kill this process\n", cli.Bytes(available))
	}
	return tell(ctx, st, m.outputs, set, report.Page{Title: "Does memory come back?", Lead: what + "."}, &sawtoothStory)
}
