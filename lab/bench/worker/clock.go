// Clock: how long a loop runs and on how many threads.

package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A looper is one thread's part of a load: loop runs n operations.
type looper interface {
	loop(n int)
	checksum() uint64
}

// runThreads gives every thread a looper of its own, warms all of them, and
// then times all of them over the same stretch of time.
func runThreads(p *params, fresh func(thread int) looper) result {
	each := make([]result, p.threads)
	var wg sync.WaitGroup
	warm := newBarrier(p.threads)
	for i := range p.threads {
		wg.Go(func() {
			l := fresh(i)
			chunk := 1
			if p.ops == 0 {
				chunk = calibrate(l, p.warm)
			}
			warm.wait(begin)
			each[i] = timed(p, l, chunk)
		})
	}
	wg.Wait()
	end()
	var r result
	for _, e := range each {
		r.ns += e.ns / float64(p.threads)
		r.ops += e.ops
		r.sum += e.sum
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
	if p.ops > 0 {
		l.loop(p.ops)
		r.ops = p.ops
	} else {
		for time.Since(start) < p.run {
			l.loop(chunk)
			r.ops += chunk
		}
	}
	r.ns = float64(time.Since(start)) / float64(r.ops)
	r.sum = l.checksum()
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
