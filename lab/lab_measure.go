package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/freehold-go/freehold"
)

// labFigures is what one run measured.
type labFigures struct {
	Entries int     `json:"entries"`
	Build   float64 `json:"build"`   // milliseconds
	Live    int64   `json:"live"`    // on the Go heap and off it, once built
	OffHeap int64   `json:"offHeap"` // of that
	Seconds float64 `json:"seconds"` // for which the load ran

	Collector float64 `json:"collector"` // share of all processors' time, until the last collection's end
	Cycles    int     `json:"cycles"`
	Pause     float64 `json:"pause"` // the longest stop of all goroutines, in milliseconds
	Late      float64 `json:"late"`  // milliseconds within which 99% of the turns ended
	Worst     float64 `json:"worst"` // and all
	PeakRSS   int64   `json:"peakRSS"`
	Goal      int64   `json:"goal"`   // the largest heap size that the collector aimed at
	Arrays    float64 `json:"arrays"` // filled by all workers, per second

	Stopped string `json:"stopped"` // why it ended early, "" if it did not
}

// measureLab is one run, in a process of its own. What stops it early is in the
// figures.
func measureLab(ctx context.Context, l labLoad, r labRun, report func(float64)) (*labFigures, error) {
	dieFirst()
	watched, stop := watchMemory(ctx, l.Reserve)
	defer stop()
	f := &labFigures{Entries: r.shape.entries(l.Live)}
	err := f.measure(watched, l, r, report)
	var short shortageError
	switch cause := context.Cause(watched); {
	case errors.As(cause, &short):
		f.Stopped = short.Error()
		return f, nil
	case errors.Is(err, freehold.ErrOutOfMemory):
		f.Stopped = err.Error()
		return f, nil
	}
	return f, err
}

func (f *labFigures) measure(ctx context.Context, l labLoad, r labRun, report func(float64)) error {
	debug.SetGCPercent(-1) // building makes no garbage
	debug.SetMemoryLimit(math.MaxInt64)
	began := time.Now()
	data, err := r.store.open(f.Entries)
	if err != nil {
		return err
	}
	defer data.close()
	const step = 1 << 16
	for from := 0; from < f.Entries; from += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := data.add(from, min(from+step, f.Entries)); err != nil {
			return fmt.Errorf("after %d of %d entries: %w", from, f.Entries, err)
		}
		report(0.5 * float64(from) / float64(f.Entries))
	}
	f.Build = since(began)
	runtime.GC()
	onHeap := int64(metricOf("/gc/heap/live:bytes").Uint64())
	f.OffHeap = data.offHeap()
	f.Live = onHeap + f.OffHeap

	if r.tuning == tuningLimit {
		debug.SetMemoryLimit(onHeap + max(onHeap, l.Headroom))
	} else {
		debug.SetGCPercent(100)
	}
	f.underLoad(ctx, l, func(done float64) { report(0.5 + 0.5*done) })
	if err := ctx.Err(); err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	return data.check(1 + f.Entries>>20)
}

// underLoad runs the load and notes what the collector did.
func (f *labFigures) underLoad(ctx context.Context, l labLoad, report func(float64)) {
	m := newMeter(func() int64 { return int64(metricOf("/gc/heap/goal:bytes").Uint64()) })
	m.take()
	stop := m.watch(func(s sample) { report(min(1, s.Seconds/l.Time.Seconds())) })
	w := labWork{arrayBytes: l.Array}
	before, began := readCollector(), time.Now()
	w.run(ctx, l.Workers, l.Time, func() bool { return readCollector().busySince(before) })
	f.Seconds = time.Since(began).Seconds()
	after := readCollector()
	stop()
	m.take()

	f.Collector, f.Cycles, f.Pause = after.since(before)
	f.Late, f.Worst = w.lateness(0.99)
	f.Arrays = float64(w.arrays.Load()) / f.Seconds
	f.PeakRSS = m.takePeak()
	for _, s := range m.samples {
		f.Goal = max(f.Goal, s.Live)
	}
}

// collector is the work of the collector so far. Processor times are as of the end
// of the last collection.
type collector struct {
	gc, all float64 // seconds
	cycles  uint64
	pauses  *metrics.Float64Histogram
}

func readCollector() collector {
	s := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(s)
	return collector{s[0].Value.Float64(), s[1].Value.Float64(), s[2].Value.Uint64(), s[3].Value.Float64Histogram()}
}

// since returns the collector's share of the processors, the collections, and the
// upper bound of the longest pause in milliseconds.
func (c collector) since(before collector) (share float64, cycles int, pause float64) {
	if all := c.all - before.all; all > 0 {
		share = min(1, (c.gc-before.gc)/all) // the last pause may be in gc alone
	}
	for i, n := range c.pauses.Counts {
		if n > before.pauses.Counts[i] {
			pause = c.pauses.Buckets[i+1]
			if math.IsInf(pause, 1) {
				pause = c.pauses.Buckets[i]
			}
		}
	}
	return share, int(c.cycles - before.cycles), pause * 1000
}

// busySince reports whether a collection is in progress, if none was before: each
// stops all goroutines twice, at its start and at its end.
func (c collector) busySince(before collector) bool {
	stops := uint64(0)
	for i, n := range c.pauses.Counts {
		stops += n - before.pauses.Counts[i]
	}
	return stops%2 != 0
}

func metricOf(name string) metrics.Value {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value
}

// dieFirst asks Linux to end this process before all others when memory runs out.
func dieFirst() { _ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }
