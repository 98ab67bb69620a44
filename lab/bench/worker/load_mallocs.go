// Mallocs: Go heap allocations per freehold call, for which the promise is 0.

package main

import (
	"runtime"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

// typedRound calls what only freehold has; see load_mallocs_typed.go.
var typedRound = func(n int) {}

// runMallocs counts over p.Ops rounds of every call that hands out a block.
// The runtime allocates now and then on its own account, so the least of
// several counts stands.
func runMallocs(p *params) (r result) {
	round := func(n int) {
		for i := range n {
			size := 1 << (4 + i%9)
			for _, get := range []func(int) (block, error){alloc, zeroed} {
				b, err := get(size)
				if err != nil {
					sample.Fail(err)
				}
				touch(b)
				free(b)
			}
		}
		typedRound(n)
	}
	n := p.Ops
	if n == 0 {
		n = 100_000
	}
	round(n)
	r.Mallocs = -1
	for range 5 {
		before := mallocs()
		round(n)
		if per := float64(mallocs()-before) / float64(n); r.Mallocs < 0 || per < r.Mallocs {
			r.Mallocs = per
		}
	}
	r.Ops = n
	return r
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
