package pool_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

// A batch that the slow path takes serves the calls that follow, whatever depth
// of the stack they are made at: it lies where they look first.
func TestEachBatchIsUsedUp(t *testing.T) {
	const gets, batch = 256, 64
	p := newPool[node](t, &pool.Options{MaxBlocks: 1 << 14})
	count := func(t *testing.T, depth int) {
		exchanges := 0
		for range gets {
			before := p.Blocks().CentralFree()
			freehold.Must(p.Get())
			if p.Blocks().CentralFree() != before {
				exchanges++
			}
		}
		// Twice as many are allowed to a goroutine that moves, by itself or
		// with its stack.
		if exchanges > 2*gets/batch {
			t.Errorf("%d bytes down the stack: %d batches for %d blocks", depth, exchanges, gets)
		}
	}
	for depth := 0; depth < 4<<10; depth += 128 {
		done := make(chan bool)
		go func() {
			defer close(done)
			atDepth(32<<10, func() {}) // the stack need not grow any more
			atDepth(depth, func() { count(t, depth) })
		}()
		<-done
		p.Reset()
	}
}

// atDepth calls f about so many bytes further down the stack.
//
//go:noinline
func atDepth(bytes int, f func()) {
	var frame [64]byte
	if bytes <= len(frame) {
		f()
		return
	}
	atDepth(bytes-len(frame)-32, f)
	frame[bytes%len(frame)] = 1
}
