// Scavenge: classes at work and at rest.

package heap

import (
	"runtime"
	"testing"

	"github.com/freehold-go/freehold/internal/small"
)

// keepBusy moves blocks of a class, so that the next tick drains no cache.
func keepBusy(t *testing.T, h *Heap) {
	t.Helper()
	var live [][]byte
	for range 1000 {
		live = append(live, alloc(t, h, 200))
	}
	for _, b := range live {
		h.Free(b)
	}
}

// What a cache gives back to a class at rest goes on to the system, while other
// classes work.
func TestClassAtRestGivesBackWhatACacheReturned(t *testing.T) {
	h := newHeap(t, Options{})
	o := newProcessor(h)
	spans := func() int { return h.small.Holding(small.ClassFor(4096, 1), 0).Spans }
	o.Free(allocOn(t, o, 4096, 1, false))
	for range 2 {
		keepBusy(t, h)
		h.Tick()
	}
	if spans() != 1 {
		t.Fatalf("%d spans", spans())
	}
	o.Close()
	keepBusy(t, h)
	h.Tick()
	if spans() != 0 {
		t.Error("the span is still there")
	}
}

// Ticks drain limbo at their third, though there is no cache.
func TestTicksDrainLimboWithoutCaches(t *testing.T) {
	h := newHeap(t, Options{})
	p := newProcessor(h)
	fillLimbo(t, p)
	if h.caches.exist() || h.small.LimboBytes() == 0 {
		t.Fatalf("caches: %v; %d bytes in limbo", h.caches.exist(), h.small.LimboBytes())
	}
	for range ticksBetweenDrain {
		h.Tick()
	}
	if n := h.small.LimboBytes(); n != 0 {
		t.Errorf("%d bytes in limbo", n)
	}
}

// Caches with less than minHoard bytes are no hoard, however little is live. Ticks of a busy heap do
// not drain them.
func TestSmallStockIsNoHoard(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 100))
	if n := h.count(); n.cached == 0 || n.cached > minHoard || n.cachesHoldMuch(tickHoard) {
		t.Errorf("%+v is a hoard", n)
	}
	for range 2 * ticksBetweenDrain {
		keepBusy(t, h)
		h.Tick()
	}
	if h.caches.drainedAt.Load() != 0 {
		t.Error("the caches were drained")
	}
}

// TrimAll waits for a heap that is busy, and the registry is free meanwhile.
func TestTrimAllLeavesTheRegistryFree(t *testing.T) {
	before, busy := newHeap(t, Options{Decay: never}), newHeap(t, Options{})
	before.Free(alloc(t, before, 1<<20))
	busy.pages.Scavenging.Lock()
	trimmed := make(chan struct{})
	go func() {
		TrimAll()
		close(trimmed)
	}()
	for before.Stats().Committed >= 1<<20 {
		runtime.Gosched()
	}
	free := false
	for range 1000 {
		if free = registry.Mu.TryLock(); free {
			registry.Mu.Unlock()
			break
		}
		runtime.Gosched()
	}
	busy.pages.Scavenging.Unlock()
	<-trimmed
	if !free {
		t.Error("the registry is locked")
	}
}
