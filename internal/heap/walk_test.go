// Walk: what it holds while it visits a block, and what it leaves.

package heap

import (
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/watch"
)

// The locks keep the memory of the block that is read, and the heap open.
func TestWalkHoldsLocks(t *testing.T) {
	h := newHeap(t, Options{})
	want := map[uint8]int{pages.BlockRun: 1, pages.LargeRun: 1}
	alloc(t, h, 64)
	alloc(t, h, 100_000)
	if watch.CanGuard {
		GuardAt(t, 1)
		alloc(t, h, 64)
		want[pages.GuardRun] = 1
	}
	visited := map[uint8]int{}
	h.walk(func(p watch.Part) {
		s := spanAt(p.Block)
		visited[s.Kind]++
		locks := map[string]interface {
			TryLock() bool
			Unlock()
		}{"scavenging": &h.pages.Scavenging}
		if s.Kind == pages.BlockRun {
			locks["the class's mu"] = &h.central[s.class].mu
		}
		for name, mu := range locks {
			if mu.TryLock() {
				mu.Unlock()
				t.Errorf("a block of %d bytes is read without %s", p.Size, name)
			}
		}
	})
	for kind, n := range want {
		if visited[kind] != n {
			t.Errorf("%d blocks in runs of kind %d, want %d", visited[kind], kind, n)
		}
	}
}

// A large block is freed, and its pages used again, between the look at its run and the one
// at its first part.
func TestLargeBlockIsFreedUnderTheWalk(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100_000)
	h.Free(b)
	h.Trim()
	visit := func(p watch.Part) { t.Errorf("%+v", p) }
	if h.visitLarge(addrOf(b), 0, visit) {
		t.Error("a free run is a large block")
	}
	for range 1000 {
		alloc(t, h, 200)
	}
	if s := spanAt(addrOf(b)); s == nil || s.Kind != pages.BlockRun {
		t.Fatalf("the pages are not used again: %+v", s)
	}
	if h.visitLarge(addrOf(b), 0, visit) {
		t.Error("a small block is a large one")
	}
}

// A large block is freed, or becomes another, between two of its parts.
func TestLargeBlockChangesBetweenParts(t *testing.T) {
	defer func() { onPart = nil }()
	for i, tt := range []struct {
		change func(h *Heap, b []byte)
		parts  int
	}{
		{func(h *Heap, b []byte) {}, 4},
		{func(h *Heap, b []byte) { h.Free(b); h.pages.Purge(^uintptr(0)) }, 1},
		{func(h *Heap, b []byte) { h.Resize(b, walkPart+8) }, 2},
		{func(h *Heap, b []byte) { h.Free(b); h.Alloc(50000, 8, true) }, 1},
	} {
		h := newHeap(t, Options{})
		b := alloc(t, h, 4*walkPart)
		var once sync.Once
		onPart = func() { once.Do(func() { tt.change(h, b) }) }
		parts := 0
		h.walk(func(watch.Part) { parts++ })
		if parts != tt.parts {
			t.Errorf("change %d: %d parts, want %d", i, parts, tt.parts)
		}
	}
}

// A span is freed between the look at its run and the one at its blocks.
func TestSpanIsFreedUnderTheWalk(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	addr := addrOf(b) &^ (pages.PageBytes - 1)
	h.Free(b)
	h.Trim()
	c := &h.central[classFor(64, 1)]
	c.visit(h, addr, func(p watch.Part) { t.Errorf("%+v", p) })
	for range 100 {
		alloc(t, h, 200) // another class has the pages
	}
	c.visit(h, addr, func(p watch.Part) { t.Errorf("%+v", p) })
}
