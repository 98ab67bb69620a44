// Mistakes beside ticks, which the race detector judges.

//go:build race

package heap

import (
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/test/unordered"
)

// A tick makes holes while a program frees a block twice. Both touch the block's status, but the
// race detector reports only races of the program's own.
func TestHolesRaceWithNoMistake(t *testing.T) {
	h := newHeap(t, Options{})
	b, neighbour := alloc(t, h, 100), alloc(t, h, 100)
	h.Free(b)
	h.pages.Scavenging.Lock()
	h.caches.drain() // b is in its span, which its neighbour keeps
	h.pages.Scavenging.Unlock()
	var before, punched unordered.Signal
	var wg sync.WaitGroup
	wg.Go(func() {
		before.Wait()
		h.small.Punch()
		punched.Set()
	})
	freeTwice := func() {
		if panicOf(func() { h.Free(b) }) == "" {
			t.Error("Free has freed the block twice")
		}
	}
	freeTwice()
	before.Set()
	punched.Wait()
	freeTwice()
	wg.Wait()
	h.Free(neighbour)
}
