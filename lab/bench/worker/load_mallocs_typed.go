//go:build !peer_maxbytes && !peer_limit && !peer_arena && !peer_shared && !peer_cache && !peer_pool && !peer_pool_cache && !peer_ristretto_allocator && !peer_pointer && !peer_goheap && !peer_modernc && !peer_modernc_mutex && !peer_ristretto && !peer_cgo && !peer_cgo_jemalloc && !peer_loop

package main

import "github.com/freehold-go/freehold"

func init() {
	type node struct {
		key, value uint64
		next       freehold.Ptr[node]
	}
	typedRound = func(n int) {
		for i := range n {
			p, err := freehold.New[node](heap)
			if err != nil {
				fail(err)
			}
			p.key = uint64(i)
			freehold.Free(heap, p)

			s, err := freehold.MakeSlice[uint64](heap, 1+i%100)
			if err != nil {
				fail(err)
			}
			s[0] = uint64(i)
			freehold.FreeSlice(heap, s)
		}
	}
}
