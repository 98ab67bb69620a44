// Shared: a map of uint64 to uint64 that several goroutines use at once.

//go:build peer_xsync || peer_syncmap || peer_rwmutex || peer_sharded

package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/lab/bench/random"
	"github.com/freehold-go/freehold/lab/bench/sample"
)

func init() { loads["shared"] = runShared }

// runShared gets in 90 of 100 operations, where half of the keys are there, puts in 5
// and deletes in 5. All keys are equally likely, so about p.Entries of them stay.
func runShared(p *params) (r result) {
	m := newShared()
	for i := range uint64(p.Entries) {
		putShared(m, keyOf(2*i), i)
	}
	keys := uint64(2 * p.Entries)
	var phase atomic.Int32 // 0 warms up, 1 measures, 2 has ended
	ns, ops := make([]float64, p.Threads), make([]int, p.Threads)
	var wg sync.WaitGroup
	for g := range p.Threads {
		wg.Go(func() {
			rnd, found := random.State(g+1), uint64(0)
			loop := func(want int32) (n int) {
				for ; phase.Load() == want; n += 1000 {
					for range 1000 {
						x := rnd.Next()
						key := keyOf(x >> 32 * keys >> 32)
						switch choice := x & (1<<32 - 1) % 100; {
						case choice < 90:
							if v, ok := getShared(m, key); ok {
								found += v
							}
						case choice < 95:
							putShared(m, key, key)
						default:
							deleteShared(m, key)
						}
					}
				}
				return n
			}
			loop(0)
			start := time.Now()
			ops[g] = loop(1)
			ns[g] = float64(time.Since(start)) / float64(max(ops[g], 1))
			sink.Add(found)
		})
	}
	time.Sleep(p.Warm)
	sample.Begin()
	phase.Store(1)
	time.Sleep(p.Run)
	phase.Store(2)
	wg.Wait()
	sample.End()
	for g := range p.Threads {
		r.NS += ns[g] / float64(p.Threads)
		r.Ops += ops[g]
	}
	r.Sum = uint64(p.Entries)
	return r
}

// sink keeps the compiler from leaving gets out.
var sink atomic.Uint64
