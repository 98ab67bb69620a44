package main

import (
	"context"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"runtime"
)

// sawtoothStory is a short memtest on several backends.
type sawtoothStory struct{}

func (sawtoothStory) name() string  { return "sawtooth" }
func (sawtoothStory) title() string { return "Memory that comes back" }
func (sawtoothStory) why() string {
	return "A service's load rises and falls. Memory that nobody uses should go back to the operating system without a collection having to find it, and without fragments keeping it."
}
func (sawtoothStory) backends() (all, usual []string) {
	return backendNames(), []string{"go", "freehold"}
}

// sawtoothLoad is the story's load, and how many samples its charts need.
func sawtoothLoad(set settings) (l load, samples int, err error) {
	l = load{
		Sizes: "both", High: set.High, Low: set.High / 16, Cycles: set.Cycles,
		Goroutines: runtime.GOMAXPROCS(0), Seed: 1, Settle: set.Settle,
	}
	if l.High/int64(l.Goroutines) < l.Sizes.max() {
		l.Goroutines = 1
	}
	if l.High < l.Sizes.max() {
		return l, 0, cli.Usagef("--high %s is too little: a chunk may have %s", cli.Bytes(l.High), cli.Bytes(l.Sizes.max()))
	}
	return l, 600, nil
}

// measurements implements story.
func (s sawtoothStory) measurements(set settings) int { return len(set.backendsOf(s)) }

// measure implements story.
func (sawtoothStory) measure(ctx context.Context, set settings, backend string, report func(float64)) (any, error) {
	l, samples, err := sawtoothLoad(set)
	if err != nil {
		return nil, err
	}
	kind, err := backendNamed(backend)
	if err != nil {
		return nil, err
	}
	b, err := kind.open(0)
	if err != nil {
		return nil, err
	}
	defer b.close()
	s := newSawtooth(l, b)
	s.progress = func(fraction float64, _ string) { report(fraction) }
	out, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	out.Samples = thin(out.Samples, samples)
	return out, nil
}

// tell implements story.
func (s sawtoothStory) tell(ctx context.Context, set settings, run runner) (section, error) {
	l, _, err := sawtoothLoad(set)
	if err != nil {
		return section{}, err
	}
	var sec section
	var outs []*outcome
	var kinds []backendKind
	for _, name := range set.backendsOf(s) {
		kind, err := backendNamed(name)
		if err != nil {
			return section{}, err
		}
		var o outcome
		err = run(ctx, s, name, &o)
		if sec.skipped(err) {
			continue
		}
		if err != nil {
			return section{}, err
		}
		outs, kinds = append(outs, &o), append(kinds, kind)
	}
	if len(outs) == 0 {
		return section{}, unavailablef("%s", joined(sec.Notes))
	}

	// worst is the most of all cycles.
	worst := func(o *outcome, f func(tooth) int64) (most int64) {
		for _, t := range o.Teeth {
			most = max(most, f(t))
		}
		return most
	}
	g := grid{Head: []string{fmt.Sprintf("%s, %s to %s", cli.Plural(l.Cycles, "cycle"), cli.Bytes(l.Low), cli.Bytes(l.High))}}
	for _, k := range kinds {
		g.Head = append(g.Head, k.title)
	}
	size := func(name string, f func(o *outcome) int64) {
		cells := []string{name}
		for _, o := range outs {
			cells = append(cells, cli.Bytes(f(o)))
		}
		g.add(cells...)
	}
	size("resident at the start", func(o *outcome) int64 { return o.Start })
	size("resident, peak", func(o *outcome) int64 { return worst(o, func(t tooth) int64 { return t.PeakRSS }) })
	size("resident after the fall, worst", func(o *outcome) int64 { return worst(o, func(t tooth) int64 { return t.AfterFall }) })
	size("resident after the decay, worst", func(o *outcome) int64 { return worst(o, func(t tooth) int64 { return t.AfterSettle }) })
	size("live then", func(o *outcome) int64 { return o.Teeth[len(o.Teeth)-1].Live })
	size("all freed, after the decay", func(o *outcome) int64 { return o.End.AfterSettle })
	size("all freed, after Trim", func(o *outcome) int64 { return o.End.AfterTrim })
	size("live in the end", func(o *outcome) int64 { return o.End.Live })

	var top float64
	sec.Grids = []grid{g}
	for i, o := range outs {
		c := sawtoothChart(kinds[i].name, o)
		for _, x := range o.Samples {
			top = max(top, float64(x.RSS))
		}
		sec.Charts = append(sec.Charts, c)
	}
	for i := range sec.Charts {
		sec.Charts[i].YMax = top // one scale for all
	}
	var peaks, kept []string
	for i, o := range outs {
		on := " on " + kinds[i].title
		if kinds[i].name == goBackend.name {
			on = " on the Go heap"
		}
		peaks = append(peaks, cli.Bytes(worst(o, func(t tooth) int64 { return t.PeakRSS }))+on)
		kept = append(kept, cli.Bytes(worst(o, func(t tooth) int64 { return t.AfterSettle }))+on)
	}
	sec.Result = fmt.Sprintf("A load that rises to %s peaks at %s, resident. Back at %s it keeps up to %s.",
		cli.Bytes(l.High), joined(peaks), cli.Bytes(l.Low), joined(kept))
	sec.Notes = append(sec.Notes, fmt.Sprintf("%s; %v idle after each fall.", l.Sizes.text(), l.Settle))
	for _, k := range kinds {
		sec.Notes = append(sec.Notes, k.about+".")
	}
	return sec, nil
}

// thin keeps about n samples, evenly, and both ends.
func thin[S any](samples []S, n int) []S {
	if len(samples) <= n {
		return samples
	}
	kept := make([]S, n)
	for i := range kept {
		kept[i] = samples[i*(len(samples)-1)/(n-1)]
	}
	return kept
}
