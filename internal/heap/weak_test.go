package heap

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold/internal/owners"
)

// A heap that is dropped stays open in the registry, as it keeps its memory. Where owners
// are watched, the collector takes it.
func TestDroppedHeaps(t *testing.T) {
	for _, watched := range []bool{false, true} {
		restore := func() {}
		if watched {
			restore = owners.WatchTo(io.Discard)
		}
		name := fmt.Sprint(t.Name(), rand.Uint64())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h := makeHeap(Options{Name: name, Decay: -1})
			h.Alloc(100, 8, false)
		}()
		<-done
		owners.Collect()
		var left *Heap
		EachOpen(func(h *Heap) {
			if h.pages.Name == name {
				left = h
			}
		})
		if (left != nil) == watched {
			t.Errorf("watched: %t, in the registry: %t", watched, left != nil)
		}
		if left != nil {
			left.Close()
		}
		restore()
	}
}
