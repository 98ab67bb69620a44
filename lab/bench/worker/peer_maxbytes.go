// Peer: freehold's Heap with a hard limit of its own.

//go:build peer_maxbytes

package main

import "github.com/freehold-go/freehold"

var heap = freehold.NewHeap(&freehold.HeapOptions{MaxBytes: cacheBytes})

func alloc(n int) (block, error)  { return heap.Alloc(n, 16) }
func zeroed(n int) (block, error) { return heap.Zeroed(n, 16) }
func free(b block)                { heap.Free(b) }

func realloc(b block, _, n int) (block, error) { return freehold.Realloc(heap, b, n, 16) }

func version() string { return "freehold, " + goVersion() }
