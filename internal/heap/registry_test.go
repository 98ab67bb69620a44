package heap

import (
	"runtime"
	"slices"
	"sync"
	"testing"
)

// isOpen reports whether EachOpen calls its function for h.
func isOpen(h *Heap) (found bool) {
	EachOpen(func(g *Heap) { found = found || g == h })
	return found
}

func TestOpenHeapsAreInOrderOfCreation(t *testing.T) {
	var made, seen []*Heap
	for range 50 {
		made = append(made, newHeap(t, Options{}))
	}
	EachOpen(func(h *Heap) {
		if slices.Contains(made, h) {
			seen = append(seen, h)
		}
	})
	if !slices.Equal(seen, made) {
		t.Errorf("%p, want %p", seen, made)
	}
	made[7].Close()
	if isOpen(made[7]) || !isOpen(made[8]) {
		t.Error("Close removes another heap, or none")
	}
}

// A heap leaves the registry before it is closed, so that EachOpen finds no closed one.
func TestHeapLeavesTheRegistryFirst(t *testing.T) {
	h := newHeap(t, Options{})
	h.pages.Scavenging.Lock() // which Close waits for
	var closing, leaving sync.WaitGroup
	closing.Go(h.Close)
	leaving.Go(func() {
		for isOpen(h) {
			runtime.Gosched()
		}
	})
	leaving.Wait()
	if h.Closed() {
		t.Error("Close did not wait")
	}
	h.pages.Scavenging.Unlock()
	closing.Wait()
}
