// Words: what a walk holds while it reads a block, and what it leaves.

package heap

import (
	"github.com/freehold-go/freehold/internal/pages"
	"sync"
	"testing"
)

// The locks keep the memory of the block that is read, and the heap open.
func TestWalkHoldsLocks(t *testing.T) {
	h := newHeap(t, Options{})
	want := map[uint8]int{pages.BlockRun: 1, pages.LargeRun: 1}
	alloc(t, h, 64)
	alloc(t, h, 100_000)
	if CanGuard {
		guardAt(t, 1, 0)
		alloc(t, h, 64)
		want[pages.GuardRun] = 1
	}
	visited := map[uint8]int{}
	h.eachPart(func(p part) {
		s := spanAt(p.block)
		visited[s.Kind]++
		locks := map[string]*sync.Mutex{"scavenging": &h.pages.Scavenging}
		switch s.Kind {
		case pages.BlockRun:
			locks["the class's mu"] = &h.central[s.class].mu
		case pages.GuardRun:
			locks["the mu of guards"] = &h.theGuards().mu
		}
		for name, mu := range locks {
			if mu.TryLock() {
				mu.Unlock()
				t.Errorf("a block of %d bytes is read without %s", p.size, name)
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
	visit := func(p part) { t.Errorf("%+v", p) }
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
