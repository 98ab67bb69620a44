// Peer: modernc.org/memory, under a mutex where several goroutines use it, as its documentation
// asks.

//go:build peer_modernc

package alloc

import (
	"sync"

	"modernc.org/memory"
)

const peer = "modernc"

var (
	mu   sync.Mutex
	heap memory.Allocator
)

func lock() {
	if several {
		mu.Lock()
	}
}

func unlock() {
	if several {
		mu.Unlock()
	}
}

func alloc(n int) (block, error) {
	lock()
	b, err := heap.UnsafeMalloc(n)
	unlock()
	return b, err
}

func zeroed(n int) (block, error) {
	lock()
	b, err := heap.UnsafeCalloc(n)
	unlock()
	return b, err
}

func free(b block) {
	lock()
	must(0, heap.UnsafeFree(b))
	unlock()
}

func realloc(b block, _, n int) (block, error) {
	lock()
	b, err := heap.UnsafeRealloc(b, n)
	unlock()
	return b, err
}
