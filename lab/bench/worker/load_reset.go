// Reset: how long it takes to end all blocks of an arena.
//
// Only the resets are timed. The blocks before them are of 64 KiB, each touched.

//go:build peer_arena || peer_shared || peer_ristretto_allocator

package main

import (
	"time"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

func init() { loads["reset"] = runReset }

func runReset(p *params) (r result) {
	fillAndReset := func() time.Duration {
		g := enter()
		for range p.Slots {
			b, err := bump(p.Min)
			if err != nil {
				sample.Fail(err)
			}
			touch(b)
		}
		g.Leave()
		start := time.Now()
		reset()
		return time.Since(start)
	}
	for start := time.Now(); ; { // at least once, so that the memory is there
		fillAndReset()
		if time.Since(start) >= p.Warm {
			break
		}
	}
	sample.Begin()
	spent := time.Duration(0)
	for start := time.Now(); p.Ops > 0 && r.Ops < p.Ops || p.Ops == 0 && time.Since(start) < p.Run; r.Ops++ {
		spent += fillAndReset()
		r.Sum += uint64(p.Slots) * uint64(p.Min)
	}
	sample.End()
	r.NS = float64(spent) / float64(r.Ops)
	return r
}
