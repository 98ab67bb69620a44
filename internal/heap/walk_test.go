// Walk: the locks held during a visit, and blocks that go away under it.

package heap

import (
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// The lock keeps the heap open.
func TestWalkHoldsScavenging(t *testing.T) {
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
		s := small.SpanAt(p.Block)
		visited[s.Kind]++
		if h.pages.Scavenging.TryLock() {
			h.pages.Scavenging.Unlock()
			t.Errorf("a block of %d bytes is read without Scavenging", p.Size)
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
	if h.visitLarge(small.AddrOf(b), 0, visit) {
		t.Error("a free run is a large block")
	}
	for range 1000 {
		alloc(t, h, 200)
	}
	if s := small.SpanAt(small.AddrOf(b)); s == nil || s.Kind != pages.BlockRun {
		t.Fatalf("the pages are not used again: %+v", s)
	}
	if h.visitLarge(small.AddrOf(b), 0, visit) {
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
