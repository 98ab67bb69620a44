// Peer: freehold's Heap through its C-like calls, which keep no sizes.

//go:build peer_pointer

package main

import "github.com/freehold-go/freehold"

var heap = freehold.NewHeap(nil)

func alloc(n int) (block, error) {
	p := heap.Malloc(n)
	if p == nil {
		return nil, freehold.ErrOutOfMemory
	}
	return p, nil
}

func zeroed(n int) (block, error) {
	p := heap.Calloc(1, n)
	if p == nil {
		return nil, freehold.ErrOutOfMemory
	}
	return p, nil
}

func free(b block) { heap.FreePointer(b) }

func realloc(b block, _, n int) (block, error) {
	p := heap.ReallocPointer(b, n)
	if p == nil {
		return nil, freehold.ErrOutOfMemory
	}
	return p, nil
}

func version() string { return "freehold, " + goVersion() }
