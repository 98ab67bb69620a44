package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/report"
	"github.com/freehold-go/freehold/lab/wire"
)

// liveStory is data that stays live, with each setting of the collector. The report tells it of an
// array, gclab of all data.
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
				group: fmt.Sprintf("%s, %s entries", r.Shape.Title, humanize.Comma(int64(r.Shape.Entries(set.Live.Live)))),
				name:  r.Title(), color: r.Store.Memory,
				about:  fmt.Sprintf("%s, %s: %s.", r.Shape.Title, r.MemoryTitle(), r.Store.About),
				result: new(load.Collection), problem: set.Live.Refusal(r),
			})
		}
		return all
	},
	measure: func(ctx context.Context, set settings, keys []string, tell wire.Writer) (any, error) {
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
			fmt.Sprintf("limit: GOGC=off, and GOMEMLIMIT is what is live on the Go heap and as much again, at least %s.", cli.Bytes(set.Live.Headroom)),
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
	Live     cli.Size      `default:"3GiB" help:"What the data takes on the Go heap with pointers, such as 12GiB; every memory gets the same entries."`
	Data     []string      `default:"${shapes}" enum:"${shapes}" help:"Kinds of live data."`
	Backend  []string      `default:"${memories}" enum:"${memories}" help:"Where it is: on the Go heap with pointers (go), there without (flat), off it."`
	Tuning   []string      `default:"${tunings}" enum:"${tunings}" help:"Settings of the collector: default (GOGC=100), limit (GOGC=off and GOMEMLIMIT)."`
	Headroom cli.Size      `placeholder:"SIZE" help:"With --tuning limit, GOMEMLIMIT is what is live on the Go heap and as much again, at least this. Default: a quarter of --live."`
	Time     time.Duration `default:"10s" help:"How long each run is under load; it goes on until a collection that has begun is done."`
	Workers  int           `default:"${processors}" help:"Goroutines that allocate and compute. Default: GOMAXPROCS."`
	Array    cli.Size      `default:"8MiB" help:"What a worker allocates at a time."`
	Reserve  cli.Size      `default:"${reserve}" help:"Memory that must stay available: a run that may take it is refused, one that takes it is stopped. Default: a twentieth of the memory, at least 256MiB."`
	Force    bool          `help:"Refuse no run. They are still stopped."`

	outputs
}

// plan turns the flags into settings, or says what is wrong with them.
func (g *gclabCommand) plan() (settings, error) {
	set := settings{Force: g.Force, Live: load.Live{
		Live: int64(g.Live), Headroom: int64(g.Headroom), Reserve: int64(g.Reserve), Time: g.Time, Workers: g.Workers, Array: int64(g.Array),
	}}
	if g.Headroom == 0 {
		set.Live.Headroom = set.Live.UsualHeadroom()
	}
	set.LiveRuns = load.LiveRuns(g.Data, g.Backend, g.Tuning)
	return set, set.Live.Check()
}

func (g *gclabCommand) Run(ctx context.Context, st cli.Streams) error {
	set, err := g.plan()
	if err != nil {
		return err
	}
	return tell(ctx, st, g.outputs, set, report.Page{
		Title: "What live data costs the collector",
		Lead:  fmt.Sprintf("%s live; %s that allocate %s at a time for %v.", g.Live, cli.Plural(g.Workers, "worker"), g.Array, g.Time),
	}, &liveStory)
}
