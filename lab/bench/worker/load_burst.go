// Burst: many processors are busy for a moment, then one goroutine goes on.
//
// Each goroutine of the burst allocates blocks of all sizes and frees them.
// After that one goroutine allocates and frees a batch of small blocks over and
// over, enough of them that it is not served by its own cache alone. What stays
// resident beyond the batch is what the allocator keeps for idle processors.

package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/lab/process"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

func init() { loads["burst"] = runBurst }

const (
	burstSmallest = 16 // bytes; each doubling from here is as likely as any other
	doublings     = 11
	cycled        = 64   // bytes of a block of the batch
	batch         = 1000 // blocks
)

func runBurst(p *params) (r result) {
	runtime.GOMAXPROCS(p.Threads)
	tables := make([][]block, p.Threads)
	for i := range tables {
		tables[i] = make([]block, p.Slots)
		clear(tables[i]) // touches it
	}
	b, err := alloc(cycled) // the allocator's own start-up is not the burst's
	if err != nil {
		sample.Fail(err)
	}
	free(b)
	runtime.GC()
	before, err := process.Resident()
	if err != nil {
		return result{Skip: err.Error()}
	}

	sums := make([]uint64, p.Threads)
	var missing atomic.Int64
	missing.Store(int64(p.Threads))
	var wg sync.WaitGroup
	for i, table := range tables {
		wg.Go(func() {
			// Spinning holds a processor each, until all of them are in use.
			for missing.Add(-1); missing.Load() > 0; {
			}
			sums[i] = burst(table, i)
		})
	}
	wg.Wait()

	live := tables[0][:0]
	sample.Begin()
	start := time.Now()
	for time.Since(start) < p.Run {
		for range batch {
			b, err := alloc(cycled)
			if err != nil {
				sample.Fail(err)
			}
			touch(b)
			live = append(live, b)
		}
		for _, b := range live {
			free(b)
		}
		live = live[:0]
		r.Ops += batch
	}
	r.NS = float64(time.Since(start)) / float64(r.Ops)
	sample.End()
	after, err := process.Resident()
	if err != nil {
		sample.Fail(err)
	}
	runtime.KeepAlive(tables)
	r.Resident, r.Requested = after-min(before, after), batch*cycled
	for _, sum := range sums {
		r.Sum += sum
	}
	return r
}

// burst fills the table and frees it, and returns the bytes that it had.
func burst(table []block, thread int) (sum uint64) {
	rnd := seed(thread)
	for i := range table {
		x := rnd.Next()
		least := uint64(burstSmallest) << slotOf(x, doublings)
		size := sizeOf(x, least, least)
		b, err := alloc(int(size))
		if err != nil {
			sample.Fail(err)
		}
		fill(bytes(b, int(size)))
		table[i] = b
		sum += size
	}
	for _, b := range table {
		free(b)
	}
	clear(table)
	return sum
}
