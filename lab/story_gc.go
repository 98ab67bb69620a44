package main

import (
	"context"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"slices"
)

// gcStory is a short gclab.
type gcStory struct{}

func (gcStory) name() string  { return "gc" }
func (gcStory) title() string { return "A large live heap" }
func (gcStory) why() string {
	return "Each collection marks all that is live on the Go heap, takes processors from the program for it, and makes goroutines that allocate help. Data that is off-heap is never marked."
}

// backends implements story.
func (gcStory) backends() (all, usual []string) {
	all = []string{goBackend.name, freeholdBackend.name}
	return all, all
}

// runs returns the measurements: with each setting of the collector the same memories, of which
// the Go heap has the data with pointers and without.
func (s gcStory) runs(set settings) []labRun {
	in := set.backendsOf(s)
	if slices.Contains(in, goBackend.name) {
		in = append(slices.Clone(in), "flat")
	}
	return labRuns([]string{arrayShape.name}, in, tunings)
}

// check says what is wrong with the story's settings, before anything runs.
func (s gcStory) check(set settings) error {
	if err := set.Lab.check(); err != nil {
		return err
	}
	for _, r := range s.runs(set) {
		if err := set.Lab.refusal(r); err != nil {
			return cli.Usagef("--live %s: %w", cli.Bytes(set.Lab.Live), err)
		}
	}
	return nil
}

// measurements implements story.
func (s gcStory) measurements(set settings) int { return len(s.runs(set)) }

// measure implements story, for gclab too: what it measures is the name of a run.
func (gcStory) measure(ctx context.Context, set settings, name string, report func(float64)) (any, error) {
	r, err := labRunNamed(name)
	if err != nil {
		return nil, err
	}
	return measureLab(ctx, set.Lab, r, report)
}

// tell implements story.
func (s gcStory) tell(ctx context.Context, set settings, run runner) (section, error) {
	var outcomes []labOutcome
	for _, r := range s.runs(set) {
		o := labOutcome{run: r}
		if err := run(ctx, s, r.name(), &o.figures); err != nil {
			return section{}, err
		}
		if o.figures.Stopped != "" {
			return section{}, fmt.Errorf("%s, %s: %s", s.title(), r.title(), o.figures.Stopped)
		}
		outcomes = append(outcomes, o)
	}
	sec := labSection(arrayShape, set.Lab, outcomes)
	sec.Charts = labCharts(outcomes)
	sec.Notes = append(sec.Notes, labNotes(set.Lab)...)
	return sec, nil
}
