//go:build !peer || peer_interface

package main

import (
	"github.com/freehold-go/freehold"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

func init() {
	type node struct {
		key, value uint64
		next       freehold.Ptr[node]
	}
	typedRound = func(n int) {
		for i := range n {
			p, err := freehold.New[node](heap)
			if err != nil {
				sample.Fail(err)
			}
			p.key = uint64(i)
			freehold.Free(heap, p)

			s, err := freehold.MakeSlice[uint64](heap, 1+i%100)
			if err != nil {
				sample.Fail(err)
			}
			s[0] = uint64(i)
			freehold.FreeSlice(heap, s)
		}
	}
}
