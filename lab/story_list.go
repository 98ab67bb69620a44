package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/report"
	"github.com/freehold-go/freehold/lab/subject"
	"github.com/freehold-go/freehold/lab/wire"
)

// listStory is a linked list.
type listStory struct{}

func (listStory) name() string { return "list" }

func (listStory) subjects() (all, usual []string) {
	for _, k := range subject.Lists {
		all = append(all, k.Name)
	}
	return all, all
}

func (s listStory) measurements(set settings) int { return len(set.subjectsOf(s)) }

func (listStory) measure(ctx context.Context, set settings, name string, tell wire.Writer) (any, error) {
	kind, err := subject.ListNamed(name)
	if err != nil {
		return nil, err
	}
	f, err := load.List(ctx, kind, set.Nodes, tell)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s listStory) tell(ctx context.Context, r *reporter) (sec report.Section, csv []byte, err error) {
	sec = report.Section{
		Title: "A linked list",
		Why:   "The collector visits every live Go value in every cycle, so a large index or cache costs time even when nobody uses it. Off-heap values are never visited.",
	}
	names, results, err := measureEach[load.ListFigures](ctx, r, s, &sec, titleOf)
	if err != nil {
		return sec, nil, err
	}
	var titles, collects, heaps []string
	var series []report.Series
	var keys [][]string
	for i, name := range names {
		kind, _ := subject.ListNamed(name)
		f := results[i]
		titles, keys = append(titles, kind.Title), append(keys, []string{name})
		series = append(series, report.Series{Name: kind.Title, Color: report.ColorOf(name), V: f})
		collects = append(collects, fmt.Sprintf("%s ms (%s)", report.Figure(f.Collect), kind.Title))
		heaps = append(heaps, cli.Bytes(f.HeapLive))
		sec.Notes = append(sec.Notes, "free, "+kind.Title+": "+kind.Frees+".")
	}
	nodes := humanize.Comma(int64(r.set.Nodes))
	sec.Grids = []report.Grid{report.Columns(fmt.Sprintf("%s nodes of %d bytes", nodes, subject.NodeBytes), titles, anys(results))}
	sec.Charts = report.Charts(series)
	sec.Result = fmt.Sprintf("With %s nodes live, one collection takes %s; the Go heap then holds %s.", nodes, report.Joined(collects), report.Joined(heaps))
	sec.Notes = append(sec.Notes,
		"off-heap: bytes in live blocks, as the allocator counts them.",
		"one collection: the median of seven calls of runtime.GC; its processor time is the mean over all processors.")
	return sec, report.CSV([]string{"list"}, keys, anys(results), load.ListFigures{}), nil
}

// titleOf returns what charts and tables call a list or an allocator.
func titleOf(name string) string {
	if k, err := subject.ListNamed(name); err == nil {
		return k.Title
	}
	return name
}
