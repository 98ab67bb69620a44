package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/run"
)

// liveStory is data that stays live, with each setting of the collector.
var liveStory = story{
	name:    "gc",
	title:   "A large live heap",
	why:     "Each collection marks all that is live on the Go heap, takes processors from the program for it, and makes goroutines that allocate help. Data that is off-heap is never marked.",
	figures: load.Collection{},
	keys:    []string{"data", "memory", "tuning", "outcome"},
	row:     load.Collection{},
	trials: func(set settings) (all []*trial) {
		for _, r := range set.LiveRuns {
			all = append(all, &trial{
				keys:  []string{r.Shape.Name, r.Store.Memory, r.Tuning},
				group: fmt.Sprintf("%s, %s entries", r.Shape.Title, humanize.Comma(int64(r.Shape.Entries(int64(set.Live.Live))))),
				name:  r.Title(), color: r.Store.Memory,
				about:  fmt.Sprintf("%s, %s: %s.", r.Shape.Title, r.MemoryTitle(), r.Store.About),
				result: new(load.Collection), problem: set.Live.Refusal(r),
			})
		}
		return all
	},
	measure: func(ctx context.Context, set settings, keys []string, tell run.Writer) (any, error) {
		return set.Live.Run(ctx, load.LiveRuns(keys[:1], keys[1:2], keys[2:])[0], tell)
	},
	sentence: func(_ settings, group string, measured []*trial) string {
		var all []string
		for _, t := range measured {
			f := t.result.(*load.Collection)
			share := "no collection"
			if f.Cycles > 0 {
				share = report.Percent(f.Collector) + "%"
			}
			all = append(all, fmt.Sprintf("%s, %s ms and %s (%s)", share, report.Figure(f.Worst), report.Figure(f.Arrays), t.name))
		}
		return fmt.Sprintf("%s: the collector's share of the processors' time, the worst turn, and the arrays that workers fill a second are %s.", upper(group), strings.Join(all, "; "))
	},
	notes: func(set settings) []string {
		return []string{
			"default: GOGC=100. With the data off-heap the goal is then a few arrays, and collections are many and short.",
			fmt.Sprintf("limit: GOGC=off, and GOMEMLIMIT is what is live on the Go heap and as much again, at least %v.", set.Live.LeastHeadroom()),
			fmt.Sprintf("A turn is due each %v and allocates %s in small objects; its time is from when it was due until it is done, and includes the wait for a processor.", load.TurnEvery, cli.Bytes(load.TurnBytes)),
			"collector: until the end of the last collection, all processors together; not known where none ended. The load goes on until a collection that has begun is done. A pause stops all goroutines.",
			"goal: the size of the Go heap at which the collector wants to be done.",
		}
	},
}

// upper returns text as a sentence begins.
func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// gclabCommand measures what live data costs the collector.
type gclabCommand struct {
	Load    load.Live `embed:""`
	Data    []string  `default:"${shapes}" enum:"${shapes}" help:"Kinds of live data."`
	Backend []string  `default:"${memories}" enum:"${memories}" help:"Where it is: on the Go heap with pointers (go), there without (flat), off it."`
	Tuning  []string  `default:"${tunings}" enum:"${tunings}" help:"Settings of the collector: default (GOGC=100), limit (GOGC=off and GOMEMLIMIT)."`
	Force   bool      `help:"Refuse no run. They are still stopped."`

	outputs
}

func (g *gclabCommand) Run(ctx context.Context, st cli.Streams) error {
	l := g.Load
	if err := l.Check(); err != nil {
		return err
	}
	return tell(ctx, st, g.outputs, settings{Live: l, LiveRuns: load.LiveRuns(g.Data, g.Backend, g.Tuning), Force: g.Force}, report.Page{
		Title: "What live data costs the collector",
		Lead:  fmt.Sprintf("%v live; %s that allocate %v at a time for %v.", l.Live, cli.Plural(l.Workers, "worker"), l.Array, l.Time),
	}, &liveStory)
}
