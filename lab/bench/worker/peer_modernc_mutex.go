// Peer: modernc.org/memory under a mutex, as several goroutines need it.

//go:build peer_modernc_mutex

package main

import (
	"sync"

	"modernc.org/memory"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

var (
	mu   sync.Mutex
	heap memory.Allocator
)

func alloc(n int) (block, error) {
	mu.Lock()
	b, err := heap.UnsafeMalloc(n)
	mu.Unlock()
	return b, err
}

func zeroed(n int) (block, error) {
	mu.Lock()
	b, err := heap.UnsafeCalloc(n)
	mu.Unlock()
	return b, err
}

func free(b block) {
	mu.Lock()
	err := heap.UnsafeFree(b)
	mu.Unlock()
	if err != nil {
		sample.Fail(err)
	}
}

func realloc(b block, _, n int) (block, error) {
	mu.Lock()
	b, err := heap.UnsafeRealloc(b, n)
	mu.Unlock()
	return b, err
}

func version() string { return "modernc.org/memory" }
