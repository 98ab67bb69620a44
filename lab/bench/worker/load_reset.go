// Reset: how long it takes to end all blocks of an arena.
//
// Only the resets are timed. The blocks before them are of 64 KiB, each touched.

//go:build peer_arena || peer_shared || peer_ristretto_allocator

package main

import "time"

func init() { loads["reset"] = runReset }

func runReset(p *params) (r result) {
	fillAndReset := func() time.Duration {
		g := enter()
		for range p.slots {
			b, err := bump(p.min)
			if err != nil {
				fail(err)
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
		if time.Since(start) >= p.warm {
			break
		}
	}
	begin()
	spent := time.Duration(0)
	for start := time.Now(); p.ops > 0 && r.ops < p.ops || p.ops == 0 && time.Since(start) < p.run; r.ops++ {
		spent += fillAndReset()
		r.sum += uint64(p.slots) * uint64(p.min)
	}
	end()
	r.ns = float64(spent) / float64(r.ops)
	return r
}
