// Peer: freehold's Heap behind the Allocator interface, as a library gets it.

//go:build peer_interface

package main

import "github.com/freehold-go/freehold"

var heap freehold.Allocator = freehold.NewHeap(nil)

func alloc(n int) (block, error)  { return heap.Alloc(n, 16) }
func zeroed(n int) (block, error) { return heap.Zeroed(n, 16) }
func free(b block)                { heap.Free(b) }

func realloc(b block, _, n int) (block, error) { return freehold.Realloc(heap, b, n, 16) }

func version() string { return "freehold, " + goVersion() }
