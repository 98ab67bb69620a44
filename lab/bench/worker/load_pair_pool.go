// Pair on a Pool: Get and Put, called as a user's loop would, where alloc of
// other peers is too large to be inlined here.

//go:build peer_pool || peer_pool_cache

package main

import "github.com/freehold-go/freehold/lab/bench/sample"

type pair struct {
	size, sum uint64
	_         [128]byte // the other thread's is on other cache lines
}

func runPair(p *params) result {
	return runThreads(p, func(int) looper { return &pair{size: uint64(p.Min)} })
}

func (l *pair) loop(n int) {
	for range n {
		o, err := objects.Get()
		if err != nil {
			sample.Fail(err)
		}
		o[0] = 1
		objects.Put(o)
	}
	l.sum += l.size * uint64(n)
}

func (l *pair) checksum() uint64 { return l.sum }
