// Peer: freehold's Heap through a Cache, for one goroutine.

//go:build peer_cache

package main

import "github.com/freehold-go/freehold"

var heap = freehold.NewHeap(nil).NewCache()

func alloc(n int) (block, error)  { return heap.Alloc(n, 16) }
func zeroed(n int) (block, error) { return heap.Zeroed(n, 16) }
func free(b block)                { heap.Free(b) }

func realloc(b block, _, n int) (block, error) { return freehold.Realloc(heap, b, n, 16) }

func version() string { return "freehold, " + goVersion() }
