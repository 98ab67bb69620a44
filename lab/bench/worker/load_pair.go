// Pair: malloc, touch, free of one size.

//go:build !peer_goheap && !peer_pool && !peer_pool_cache

package main

import "github.com/freehold-go/freehold/lab/bench/sample"

type pair struct {
	size, sum uint64
	_         [128]byte // the other thread's is on other cache lines
	kept      keeper
	_         [128]byte
}

func runPair(p *params) result {
	return runThreads(p, func(int) looper { return &pair{size: uint64(p.Min)} })
}

func (l *pair) loop(n int) {
	size := int(l.size)
	for range n {
		b, err := alloc(size)
		if err != nil {
			sample.Fail(err)
		}
		l.kept.keep(b)
		touch(b)
		free(b)
	}
	l.sum += l.size * uint64(n)
}

func (l *pair) checksum() uint64 { return l.sum }
