package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
)

// reportCommand tells stories.
type reportCommand struct {
	Stories []string `arg:"" optional:"" name:"story" help:"Stories to tell: ${stories}. Default: all but budget, one after the other."`

	Nodes   int       `default:"2000000" help:"Nodes of the linked list."`
	Live    cli.Size  `default:"256MiB" help:"What the collector's live data takes on the Go heap."`
	High    *cli.Size `placeholder:"SIZE" help:"Live bytes at the top of the sawtooth. Default: 1GiB, or less on a small machine."`
	Backend nameList  `placeholder:"NAME,..." help:"What to compare, of: ${subjects}. Default: all of them in the list, go and freehold elsewhere."`

	boxFlags
	outputs

	Cycles int           `hidden:"" default:"3"`
	Settle time.Duration `hidden:"" default:"1500ms"`
	Load   time.Duration `hidden:"" default:"1s"` // of the collector
}

// plan turns the flags into stories and their settings, or says what is wrong.
func (c *reportCommand) plan() ([]story, settings, error) {
	fail := func(err error) ([]story, settings, error) { return nil, settings{}, err }
	chosen := tour
	if len(c.Stories) > 0 {
		chosen = nil
		for _, name := range c.Stories {
			s, err := storyNamed(name)
			if err != nil {
				return fail(err)
			}
			chosen = append(chosen, s)
		}
	}
	if _, err := c.Backend.of("--backend", subjectNames()); err != nil {
		return fail(err)
	}
	set := settings{Nodes: c.Nodes, Subjects: c.Backend, Live: load.NewLive(int64(c.Live), c.Load)}
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(s story) bool { return len(set.subjectsOf(s)) == 0 })
	if len(chosen) == 0 {
		return fail(cli.Usagef("--backend %s: none of the chosen stories supports it", strings.Join(c.Backend, ",")))
	}
	total, _ := budget.Memory()
	high := int64(1 << 30)
	if total > 0 {
		high = min(high, total/8)
	}
	if c.High != nil {
		high = int64(*c.High)
	}
	switch {
	case c.Nodes < 1:
		return fail(cli.Usagef("--nodes %d: at least one is needed", c.Nodes))
	case total > 0 && int64(c.Nodes) > total/2/64:
		return fail(cli.Usagef("--nodes %d: they would take more than half of the %s of memory", c.Nodes, cli.Bytes(total)))
	case total > 0 && high > total/3:
		return fail(cli.Usagef("--high %s is more than a third of the %s of memory, and the Go heap needs twice that; memtest goes higher", cli.Bytes(high), cli.Bytes(total)))
	}
	var err error
	if set.Sawtooth, err = newSawtooth(high, c.Cycles, c.Settle, nil); err != nil {
		return fail(err)
	}
	if slices.Contains(chosen, story(liveStory{})) {
		if err := (liveStory{}).check(set); err != nil {
			return fail(err)
		}
	}
	if slices.Contains(chosen, story(budgetStory{})) {
		if set.Boxes, err = c.boxes(); err != nil {
			return fail(err)
		}
	}
	if len(chosen) > 1 && c.CSV != "" {
		return fail(cli.Usagef("--csv is for one story"))
	}
	return chosen, set, nil
}

func (c *reportCommand) Run(ctx context.Context, st cli.Streams) error {
	chosen, set, err := c.plan()
	if err != nil {
		return err
	}
	steps := 0
	for _, s := range chosen {
		steps += s.measurements(set)
	}
	r, err := newReporter(st, c.outputs, "report", set, steps)
	if err != nil {
		return err
	}
	var failure error
	for _, s := range chosen {
		sec, csv, err := s.tell(ctx, r)
		if err != nil {
			failure = err
			break
		}
		r.add(sec)
		failure = errors.Join(failure, r.files.WriteCSV(csv))
	}
	return r.end("freehold: memory you own", "Off-heap memory for Go, next to the Go heap, on this machine.", nil, failure)
}
