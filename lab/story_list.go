package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
)

// listStory is a linked list.
var listStory = story{
	name:    "list",
	title:   "A linked list",
	why:     "The collector visits every live Go value in every cycle, so a large index or cache costs time even when nobody uses it. Off-heap values are never visited.",
	figures: load.ListFigures{},
	keys:    []string{"list", "outcome"},
	row:     load.ListFigures{},
	trials: func(set settings) (all []*trial) {
		for _, m := range subject.Memories {
			if set.wants(m.Name, true) {
				all = append(all, &trial{
					keys: []string{m.Name}, group: listNodes(set) + fmt.Sprintf(" nodes of %d bytes", subject.NodeBytes),
					name: m.Title, color: m.Name, result: new(load.ListFigures),
				})
			}
		}
		return all
	},
	measure: func(_ context.Context, set settings, keys []string, tell run.Writer) (any, error) {
		return load.List(subject.Named(keys[0]), set.Nodes, tell)
	},
	sentence: func(set settings, _ string, measured []*trial) string {
		var collects, heaps []string
		for _, t := range measured {
			f := t.result.(*load.ListFigures)
			collects = append(collects, fmt.Sprintf("%s ms (%s)", report.Figure(f.Collect), t.name))
			heaps = append(heaps, cli.Bytes(f.HeapLive))
		}
		return fmt.Sprintf("With %s nodes live, one collection takes %s; the Go heap then holds %s.", listNodes(set), report.Joined(collects), report.Joined(heaps))
	},
	notes: func(settings) []string {
		return []string{
			"free: node by node. The Go heap's list is dropped and collected, the arena closed, all at once.",
			"off-heap: bytes in live blocks, as the allocator counts them; C counts all of its code, with what threads' caches keep.",
			"one collection: the median of seven calls of runtime.GC; its processor time is the mean over all processors.",
		}
	},
}

func listNodes(set settings) string { return humanize.Comma(int64(set.Nodes)) }
