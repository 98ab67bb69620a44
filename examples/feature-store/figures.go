// Figures: what a table under load costs, and its collections.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/freehold-go/freehold"
)

// figures are those of one table with one setting of the collector. Sizes are in MiB,
// times in milliseconds.
type figures struct {
	name            string
	fill            float64
	goHeap, offHeap float64 // with the table filled
	rate            float64 // requests a second
	p50, p99, worst float64 // of requests
	collector       float64 // share of all processors' time, until the last collection's end
	collections     uint64
	collection      float64 // of one that is forced, without a load: its time
	goal            float64 // of the Go heap
}

// compete fills a table and puts it under load, once for each headroom: with Go's
// default settings if it is 0, and else with GOGC=off and a memory limit that lets the Go
// heap grow by so many bytes.
func compete(ctx context.Context, name string, t featureTable, heap *freehold.Heap, o options, headrooms []int) (all []figures, err error) {
	start := time.Now()
	if err := fill(ctx, t, o.n); err != nil {
		return nil, err
	}
	filled := milliseconds(time.Since(start))
	url, stop, err := serve(newService(t))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, headroom := range headrooms {
		f := figures{name: name, fill: filled}
		if headroom > 0 {
			f.name += ", limit"
		}
		if err := f.measure(ctx, url, heap, headroom, o); err != nil {
			return all, err
		}
		all = append(all, f)
	}
	runtime.KeepAlive(t)
	return all, nil
}

func (f *figures) measure(ctx context.Context, url string, heap *freehold.Heap, headroom int, o options) error {
	runtime.GC()
	live := read()[3].Value.Uint64()
	f.goHeap, f.offHeap = mib(live), mib(uint64(heap.Stats().Committed))
	if headroom > 0 {
		limit := debug.SetMemoryLimit(int64(live) + int64(headroom))
		percent := debug.SetGCPercent(-1)
		defer func() { debug.SetMemoryLimit(limit); debug.SetGCPercent(percent) }()
	}
	before, start := read(), time.Now()
	took, err := load(ctx, url, o)
	if err != nil {
		return err
	}
	seconds, after := time.Since(start).Seconds(), read()
	if len(took) == 0 {
		return fmt.Errorf("%s: no request was answered in %v", f.name, o.time)
	}
	f.rate = float64(len(took)) / seconds
	f.p50, f.p99, f.worst = quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1)
	if all := after[1].Value.Float64() - before[1].Value.Float64(); all > 0 {
		f.collector = min(1, (after[0].Value.Float64()-before[0].Value.Float64())/all) // the last pause may be in the first alone
	}
	f.collections = after[2].Value.Uint64() - before[2].Value.Uint64()
	f.goal = mib(after[4].Value.Uint64())
	start = time.Now()
	runtime.GC()
	f.collection = milliseconds(time.Since(start))
	return nil
}

// read reads the collector's metrics. Processor times are as of the end of the last
// collection.
func read() []metrics.Sample {
	s := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/goal:bytes"},
	}
	metrics.Read(s)
	return s
}

// quantile returns the q-quantile of the sorted times, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	return milliseconds(sorted[int(math.Round(float64(len(sorted)-1)*q))])
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
func mib(n uint64) float64                 { return float64(n) / (1 << 20) }

// printFigures prints tables side by side.
func printFigures(w io.Writer, all []figures) {
	for _, row := range []struct {
		name  string
		value func(figures) string
	}{
		{"", func(f figures) string { return f.name }},
		{"filled in, s", func(f figures) string { return fmt.Sprintf("%.1f", f.fill/1e3) }},
		{"live on the Go heap, MiB", func(f figures) string { return fmt.Sprintf("%.1f", f.goHeap) }},
		{"off-heap, MiB", func(f figures) string { return fmt.Sprintf("%.1f", f.offHeap) }},
		{"goal of the Go heap, MiB", func(f figures) string { return fmt.Sprintf("%.0f", f.goal) }},
		{"requests a second", func(f figures) string { return fmt.Sprintf("%.0f", f.rate) }},
		{"p50, ms", func(f figures) string { return fmt.Sprintf("%.2f", f.p50) }},
		{"p99, ms", func(f figures) string { return fmt.Sprintf("%.2f", f.p99) }},
		{"worst, ms", func(f figures) string { return fmt.Sprintf("%.1f", f.worst) }},
		{"collector, % CPU", func(f figures) string { return fmt.Sprintf("%.1f", 100*f.collector) }},
		{"collections", func(f figures) string { return strconv.FormatUint(f.collections, 10) }},
		{"one more, without load, ms", func(f figures) string { return fmt.Sprintf("%.1f", f.collection) }},
	} {
		fmt.Fprint(w, row.name, "\t")
		for _, f := range all {
			fmt.Fprint(w, row.value(f), "\t")
		}
		fmt.Fprintln(w)
	}
}
