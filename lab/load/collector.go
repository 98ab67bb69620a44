package load

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
)

// Collection is what live data cost the collector. Shares and pauses are not known where no
// collection ended.
type Collection struct {
	Collector float64 `json:"collector_share" show:"collector, % CPU" unit:"%"` // until the last collection's end
	Cycles    int     `json:"collections" show:"collections" unit:"n"`
	Pause     float64 `json:"pause_ms" show:"worst pause, ms"` // the longest stop of all goroutines
	Late      float64 `json:"turn_p99_ms" show:"99% of turns, ms"`
	Worst     float64 `json:"turn_worst_ms" show:"worst turn, ms"`
	Arrays    float64 `json:"arrays_per_s" show:"arrays a second"`
	Goal      int64   `json:"goal" show:"largest goal" unit:"B"` // heap size that the collector aimed at
	PeakRSS   int64   `json:"peak_rss" show:"resident, peak" unit:"B"`
	Live      int64   `json:"live" show:"live" unit:"B"` // on the Go heap and off it, once built
	OffHeap   int64   `json:"off_heap" show:"of that off-heap" unit:"B"`
	Build     float64 `json:"build_s" show:"build, s"`
	Seconds   float64 `json:"load_s" show:"load, s"` // for which the load ran
}

// Run is one run, in a process of its own.
func (l Live) Run(ctx context.Context, r LiveRun, tell run.Writer) (*Collection, error) {
	run.DieFirst()
	watched, stop := watchMemory(ctx, int64(l.Reserve))
	defer stop()
	f := &Collection{}
	err := f.measure(watched, l, r, tell)
	if cause := context.Cause(watched); cause != nil {
		err = cause
	}
	return f, err
}

func (f *Collection) measure(ctx context.Context, l Live, r LiveRun, tell run.Writer) error {
	debug.SetGCPercent(-1) // building makes no garbage
	debug.SetMemoryLimit(math.MaxInt64)
	began := time.Now()
	entries := r.Shape.Entries(int64(l.Live))
	data, err := r.Store.Open(entries)
	if err != nil {
		return err
	}
	const step = 1 << 16
	for from := 0; from < entries; from += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := from; i < min(from+step, entries); i++ {
			if err := data.Put(i); err != nil {
				return fmt.Errorf("after %d of %d entries: %w", i, entries, err)
			}
		}
		tell.Progress(0.5*float64(from)/float64(entries), "")
	}
	f.Build = time.Since(began).Seconds()
	runtime.GC()
	onHeap := int64(metricOf("/gc/heap/live:bytes").Uint64())
	f.OffHeap = data.Bytes()
	f.Live = onHeap + f.OffHeap

	if r.Tuning == TuningLimit {
		debug.SetMemoryLimit(onHeap + max(onHeap, int64(l.LeastHeadroom())))
	} else {
		debug.SetGCPercent(100)
	}
	f.underLoad(ctx, l, tell)
	if err := ctx.Err(); err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	if sum := data.Sum(); sum != subject.SumOf(entries) {
		return fmt.Errorf("the numbers of %d entries add up to %d", entries, sum)
	}
	return nil
}

// underLoad runs the load and notes the work of the collector.
func (f *Collection) underLoad(ctx context.Context, l Live, tell run.Writer) {
	m := newMeter(func() int64 { return int64(metricOf("/gc/heap/goal:bytes").Uint64()) })
	m.take()
	stop := m.watch(func(s Sample) { tell.Progress(0.5+0.5*min(1, s.Seconds/l.Time.Seconds()), "") })
	w := work{arrayBytes: int64(l.Array)}
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
// upper bound of the longest pause in milliseconds. Without a collection there are no shares and
// pauses, which are then -1.
func (c collector) since(before collector) (share float64, cycles int, pause float64) {
	cycles = int(c.cycles - before.cycles)
	if cycles == 0 {
		return -1, 0, -1
	}
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
	return share, cycles, pause * 1000
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
