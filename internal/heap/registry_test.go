// Registry: open, dropped and closed heaps.

package heap

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/small"
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

// The block of a closed heap is no other heap's, whoever has its number now.
func TestClosedHeapsBlocksAreNobodys(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	number := h.mapID
	h.Close()
	if _, _, ok := small.PageWord(small.AddrOf(b), number); ok {
		t.Error("a heap of the same number would find the block's status")
	}
	next := newHeap(t, Options{})
	if next.mapID != number {
		t.Fatalf("number %#x was given back, and %#x taken", number, next.mapID)
	}
	if next.Owns(b) {
		t.Error("the next heap owns the block")
	}
	if got := next.diagnose("Free", b); !strings.HasPrefix(got, "the memory belongs to no open heap") {
		t.Errorf("the next heap says that %s", got)
	}
	b = alloc(t, next, 64)
	for name, f := range map[string]func(){"Free": func() { h.Free(b) }, "Resize": func() { h.Resize(b, 60) }} {
		if got := panicOf(f); !strings.Contains(got, "is closed") {
			t.Errorf("%s of the next heap's block in the closed heap: panic %q", name, got)
		}
	}
	next.Free(b)
}

// A collected container counts once its memory is free, and not if it is not freed.
func TestCollectedIsFree(t *testing.T) {
	h := newHeap(t, Options{})
	for _, freed := range []bool{true, false} {
		got := h.Collect(func() bool {
			if n := h.Stats().Collected; freed && n != 0 {
				t.Errorf("%d are counted before their memory is free", n)
			}
			return freed
		})
		if n := h.Stats().Collected; n != 1 || got != freed {
			t.Errorf("freed %t: Collect returns %t, and %d are counted", freed, got, n)
		}
	}
}
