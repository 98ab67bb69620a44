// Peer: modernc.org/memory, for one goroutine as its documentation asks.

//go:build peer_modernc

package main

import (
	"modernc.org/memory"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

var heap memory.Allocator

func alloc(n int) (block, error)  { return heap.UnsafeMalloc(n) }
func zeroed(n int) (block, error) { return heap.UnsafeCalloc(n) }

func free(b block) {
	if err := heap.UnsafeFree(b); err != nil {
		sample.Fail(err)
	}
}

func realloc(b block, _, n int) (block, error) { return heap.UnsafeRealloc(b, n) }

func version() string { return "modernc.org/memory" }
