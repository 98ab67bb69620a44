// The heap below the containers of freehold.

//go:build peer_map || peer_sharded || peer_btree || peer_intern

package main

import "github.com/freehold-go/freehold"

func newHeap() *freehold.Heap {
	return freehold.NewHeap(&freehold.HeapOptions{HugePages: hugePages})
}
