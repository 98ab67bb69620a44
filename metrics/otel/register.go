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
//
// They are the fields of [freehold.Stats]. The last four are counters, the others
// up-down-counters, so that backends may add them up. Heaps of one name are added up already, see
// package metrics.
package otel

import (
	"context"
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// HeapNameKey is the attribute that tells heaps apart.
const HeapNameKey = attribute.Key("freehold.heap.name")

// A figure is one metric of a heap.
type figure struct {
	name, unit, help string
	counts           bool // only rises
	value            func(*freehold.Stats) int64
}

var figures = []figure{
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
}

// instrument returns the figure's instrument of a meter.
func (f *figure) instrument(meter metric.Meter) (metric.Int64Observable, error) {
	name := "freehold.heap." + f.name
	if f.counts {
		return meter.Int64ObservableCounter(name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
	}
	return meter.Int64ObservableUpDownCounter(name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
}

// Register makes the instruments on a meter, of all heaps of the process, those that are made later
// too. Unregister of its result ends them. The error is the meter's. Each collection costs
// a call of Stats for each heap, microseconds.
func Register(meter metric.Meter) (metric.Registration, error) {
	instruments := make([]metric.Int64Observable, len(figures))
	observables := make([]metric.Observable, len(figures))
	for i := range figures {
		instrument, err := figures[i].instrument(meter)
		if err != nil {
			return nil, fmt.Errorf("freehold: otel.Register: %w", err)
		}
		instruments[i], observables[i] = instrument, instrument
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, st := range metrics.ByName() {
			heap := metric.WithAttributeSet(attribute.NewSet(HeapNameKey.String(st.Name)))
			for i, f := range figures {
				if f.name != "limit" || st.MaxBytes > 0 {
					o.ObserveInt64(instruments[i], f.value(&st), heap)
				}
			}
		}
		return nil
	}, observables...)
	if err != nil {
		return nil, fmt.Errorf("freehold: otel.Register: %w", err)
	}
	return registration, nil
}
