// Zeroed: calloc, touch, free of one size.

package main

import "github.com/freehold-go/freehold/lab/bench/sample"

type zeroedPair struct {
	size, sum uint64
	_         [128]byte // the other thread's is on other cache lines
	kept      keeper
	_         [128]byte
}

func runZeroed(p *params) result {
	return runThreads(p, func(int) looper { return &zeroedPair{size: uint64(p.Min)} })
}

func (l *zeroedPair) loop(n int) {
	size := int(l.size)
	for range n {
		b, err := zeroed(size)
		if err != nil {
			sample.Fail(err)
		}
		l.kept.keep(b)
		touch(b)
		free(b)
	}
	l.sum += l.size * uint64(n)
}

func (l *zeroedPair) checksum() uint64 { return l.sum }
