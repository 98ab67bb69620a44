// Clock: how long a loop runs and on how many threads.

package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

// A looper is one thread's part of a load: loop runs n operations.
type looper interface {
	loop(n int)
	checksum() uint64
}

// runThreads gives every thread a looper of its own, warms all of them, and
// then times all of them over the same stretch of time.
func runThreads(p *params, fresh func(thread int) looper) result {
	each := make([]result, p.Threads)
	var wg sync.WaitGroup
	warm := newBarrier(p.Threads)
	for i := range p.Threads {
		wg.Go(func() {
			l := fresh(i)
			chunk := 1
			if p.Ops == 0 {
				chunk = calibrate(l, p.Warm)
			}
			warm.wait(sample.Begin)
			each[i] = timed(p, l, chunk)
		})
	}
	wg.Wait()
	sample.End()
	var r result
	for _, e := range each {
		r.NS += e.NS / float64(p.Threads)
		r.Ops += e.Ops
		r.Sum += e.Sum
	}
	return r
}

// calibrate warms l for d and returns how many operations take about 200 us,
// so that reading the clock costs nothing.
func calibrate(l looper, d time.Duration) (chunk int) {
	chunk = 1
	for start := time.Now(); ; {
		t := time.Now()
		l.loop(chunk)
		if time.Since(t) < 200*time.Microsecond {
			chunk *= 2
		}
		if time.Since(start) >= d {
			return chunk
		}
	}
}

func timed(p *params, l looper, chunk int) (r result) {
	start := time.Now()
	if p.Ops > 0 {
		l.loop(p.Ops)
		r.Ops = p.Ops
	} else {
		for time.Since(start) < p.Run {
			l.loop(chunk)
			r.Ops += chunk
		}
	}
	r.NS = float64(time.Since(start)) / float64(r.Ops)
	r.Sum = l.checksum()
	return r
}

// A barrier lets n threads start together; the last to come runs last first.
type barrier struct {
	missing atomic.Int32
	open    atomic.Bool
}

func newBarrier(n int) *barrier {
	b := &barrier{}
	b.missing.Store(int32(n))
	return b
}

func (b *barrier) wait(last func()) {
	if b.missing.Add(-1) == 0 {
		last()
		b.open.Store(true)
	}
	for !b.open.Load() {
		runtime.Gosched()
	}
}
