// Register: the figures of heaps for OpenTelemetry.

// Package otel exports the figures of heaps to OpenTelemetry:
//
//	import freeholdmetrics "github.com/freehold-go/freehold/metrics/otel"
//
//	_, err := freeholdmetrics.Register(otel.Meter("example.com/myservice"))
//
// Each metric has the attribute freehold.heap.name, HeapOptions.Name:
//
//	freehold.heap.live           By
//	freehold.heap.live_blocks    {block}
//	freehold.heap.large          By
//	freehold.heap.large_blocks   {block}
//	freehold.heap.active         By
//	freehold.heap.resident       By
//	freehold.heap.retained       By
//	freehold.heap.metadata       By
//	freehold.heap.committed      By
//	freehold.heap.limit          By        only with HeapOptions.MaxBytes
//	freehold.heap.slow_allocs    {call}
//	freehold.heap.slow_frees     {call}
//	freehold.heap.refusals       {call}
//	freehold.heap.purged         By
//	freehold.heap.guarded        {block}
//	freehold.heap.guards         {block}
//	freehold.heap.skipped_guards {block}
//
// They are the fields of [freehold.Stats]. Heaps of one name are added up already, see package
// metrics. These have the attribute freehold.tag, and are of [freehold.AllTags]. They count
// every call. A tag such as db/cache is part of db:
//
//	freehold.tag.live            By
//	freehold.tag.live_blocks     {block}
//	freehold.tag.peak            By
//	freehold.tag.allocs          {block}
//	freehold.tag.frees           {block}
//
// What only rises is a counter; the others are up-down-counters, so that backends may add
// them up.
package otel

import (
	"context"
	"fmt"
	"slices"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// HeapNameKey is the attribute that tells heaps apart.
const HeapNameKey = attribute.Key("freehold.heap.name")

// TagKey is the attribute that tells tags apart.
const TagKey = attribute.Key("freehold.tag")

// A figure is one metric of a heap or a tag.
type figure[S any] struct {
	name, unit, help string
	counts           bool // only rises
	value            func(*S) int64
}

var figures = []figure[freehold.Stats]{
	{"live", "By", "Memory in live blocks, as the heap rounds them up.", false, func(st *freehold.Stats) int64 { return int64(st.LiveBytes) }},
	{"live_blocks", "{block}", "Live blocks.", false, func(st *freehold.Stats) int64 { return int64(st.Live) }},
	{"large", "By", "Memory in live blocks larger than 32 KiB or in whole pages.", false, func(st *freehold.Stats) int64 { return int64(st.LargeBytes) }},
	{"large_blocks", "{block}", "Live blocks larger than 32 KiB or in whole pages.", false, func(st *freehold.Stats) int64 { return int64(st.Large) }},
	{"active", "By", "Memory of pages in use.", false, func(st *freehold.Stats) int64 { return int64(st.Active) }},
	{"resident", "By", "Physical memory, an upper bound.", false, func(st *freehold.Stats) int64 { return int64(st.Resident) }},
	{"retained", "By", "Reserved addresses without memory.", false, func(st *freehold.Stats) int64 { return int64(st.Retained) }},
	{"metadata", "By", "Memory of the heap's own bookkeeping.", false, func(st *freehold.Stats) int64 { return int64(st.Metadata) }},
	{"committed", "By", "Memory of pages that may hold some, which the limit is for.", false, func(st *freehold.Stats) int64 { return int64(st.Committed) }},
	{"limit", "By", "Hard limit of the committed memory.", false, func(st *freehold.Stats) int64 { return int64(st.MaxBytes) }},
	{"slow_allocs", "{call}", "Allocations that missed the caches, and all of large blocks.", true, func(st *freehold.Stats) int64 { return int64(st.SlowAllocs) }},
	{"slow_frees", "{call}", "Frees that missed the caches, and all of large blocks.", true, func(st *freehold.Stats) int64 { return int64(st.SlowFrees) }},
	{"refusals", "{call}", "Calls that failed for lack of memory.", true, func(st *freehold.Stats) int64 { return int64(st.Refusals) }},
	{"purged", "By", "Memory returned to the system.", true, func(st *freehold.Stats) int64 { return int64(st.PurgedBytes) }},
	{"guarded", "{block}", "Live blocks that are guarded.", false, func(st *freehold.Stats) int64 { return int64(st.Guarded) }},
	{"guards", "{block}", "Blocks that were guarded.", true, func(st *freehold.Stats) int64 { return int64(st.GuardedEver) }},
	{"skipped_guards", "{block}", "Blocks that were to be guarded, and were not for lack of budget or memory.", true, func(st *freehold.Stats) int64 { return int64(st.GuardsSkipped) }},
}

var tagFigures = []figure[freehold.TagStats]{
	{"live", "By", "Memory in live blocks, as asked for.", false, func(t *freehold.TagStats) int64 { return int64(t.LiveBytes) }},
	{"live_blocks", "{block}", "Live blocks.", false, func(t *freehold.TagStats) int64 { return int64(t.Live) }},
	{"peak", "By", "Maximum of the memory in live blocks.", false, func(t *freehold.TagStats) int64 { return int64(t.PeakBytes) }},
	{"allocs", "{block}", "Blocks allocated.", true, func(t *freehold.TagStats) int64 { return int64(t.Allocs) }},
	{"frees", "{block}", "Blocks freed.", true, func(t *freehold.TagStats) int64 { return int64(t.Frees) }},
}

// instrument returns the figure's instrument of a meter.
func (f *figure[S]) instrument(meter metric.Meter, prefix string) (metric.Int64Observable, error) {
	name := prefix + f.name
	if f.counts {
		return meter.Int64ObservableCounter(name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
	}
	return meter.Int64ObservableUpDownCounter(name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
}

// instruments returns those of figures.
func instruments[S any](meter metric.Meter, prefix string, figures []figure[S]) (all []metric.Int64Observable, err error) {
	for i := range figures {
		instrument, err := figures[i].instrument(meter, prefix)
		if err != nil {
			return nil, fmt.Errorf("freehold: otel.Register: %w", err)
		}
		all = append(all, instrument)
	}
	return all, nil
}

// Register makes the instruments on a meter, of all heaps and tags of the process, those that are
// made later too. Unregister of its result ends them. The error is the meter's. Each collection
// costs a call of Stats for each heap, microseconds.
func Register(meter metric.Meter) (metric.Registration, error) {
	ofHeaps, err := instruments(meter, "freehold.heap.", figures)
	if err != nil {
		return nil, err
	}
	ofTags, err := instruments(meter, "freehold.tag.", tagFigures)
	if err != nil {
		return nil, err
	}
	var observables []metric.Observable
	for _, instrument := range slices.Concat(ofHeaps, ofTags) {
		observables = append(observables, instrument)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, st := range metrics.ByName() {
			heap := metric.WithAttributeSet(attribute.NewSet(HeapNameKey.String(st.Name)))
			for i, f := range figures {
				if f.name != "limit" || st.MaxBytes > 0 {
					o.ObserveInt64(ofHeaps[i], f.value(&st), heap)
				}
			}
		}
		for _, t := range freehold.AllTags() {
			tag := metric.WithAttributeSet(attribute.NewSet(TagKey.String(t.Tag)))
			for i, f := range tagFigures {
				o.ObserveInt64(ofTags[i], f.value(&t), tag)
			}
		}
		return nil
	}, observables...)
	if err != nil {
		return nil, fmt.Errorf("freehold: otel.Register: %w", err)
	}
	return registration, nil
}
