package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/subject"
)

// reportCommand tells stories.
type reportCommand struct {
	Stories []string `arg:"" optional:"" name:"story" default:"tour" enum:"tour,${stories}" help:"Stories to tell: ${stories}. The default, tour, is all but budget, one after the other."`

	Nodes   int      `default:"2000000" help:"Nodes of the linked list."`
	Live    cli.Size `default:"256MiB" help:"What the collector's live data takes on the Go heap."`
	High    cli.Size `default:"${high}" help:"Live bytes at the top of the sawtooth. Default: 1GiB, or less on a small machine."`
	Backend []string `default:"usual" enum:"usual,${subjects}" help:"What to compare, of: ${subjects}. Usual are all of them in the list, go and freehold elsewhere."`

	Boxes load.Boxes `embed:""`
	outputs

	Cycles int           `hidden:"" default:"3"`
	Settle time.Duration `hidden:"" default:"1500ms"`
	Load   time.Duration `hidden:"" default:"1s"` // of the collector
}

// plan turns the flags into stories and their settings, or returns an error.
func (c *reportCommand) plan() (told []*story, set settings, err error) {
	for _, name := range c.Stories {
		if name == "tour" {
			told = append(told, stories[:len(stories)-1]...)
		} else {
			told = append(told, storyNamed(name))
		}
	}
	set = settings{Nodes: c.Nodes, Subjects: c.Backend, Live: load.NewLive(c.Live, c.Load), Boxes: c.Boxes}
	for _, r := range load.LiveRuns([]string{"array"}, subject.LiveMemories, load.Tunings) {
		if set.wants(r.Store.Memory, true) || r.Store.Memory == "flat" && set.wants("go", true) {
			set.LiveRuns = append(set.LiveRuns, r)
		}
	}
	set.Sawtooth = load.NewSawtooth(c.High, c.Cycles, c.Settle)
	err = cmp.Or(
		load.Between("--nodes", c.Nodes, 1, int(load.PartOfMemory(0.5)/64)),
		load.Between("--high", c.High, 0, load.PartOfMemory(1./3)), // the Go heap needs twice that
		set.Sawtooth.Check(), set.Live.Check(),
	)
	if err == nil && len(told) > 1 && c.CSV != "" {
		err = cli.Usagef("--csv is for one story")
	}
	if slices.Contains(told, &budgetStory) {
		err = cmp.Or(err, set.Boxes.Check())
	}
	return told, set, err
}

func (c *reportCommand) Run(ctx context.Context, st cli.Streams) error {
	told, set, err := c.plan()
	if err != nil {
		return err
	}
	return tell(ctx, st, c.outputs, set, report.Page{
		Title: "freehold: memory you own", Lead: "Off-heap memory for Go, next to the Go heap, on this machine.",
	}, told...)
}
