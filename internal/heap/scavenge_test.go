// Scavenge: classes at work and at rest.

package heap

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
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

func TestClassThatMovesBlocksKeepsItsStock(t *testing.T) {
	Groups(t, 1)
	h := newHeap(t, Options{})
	var live [][]byte
	for range 5000 {
		live = append(live, alloc(t, h, 64))
	}
	for _, b := range live {
		h.Free(b)
	}
	c := h.stock(classFor(64, 8), 0)
	before := c.full.blocks
	if st := h.Stats(); st.Blocks != 0 {
		t.Errorf("%d blocks are live, of which %d are in stock", st.Blocks, before)
	}
	h.Tick()
	if before == 0 || c.full.blocks != before {
		t.Errorf("%d blocks were in stock, and %d after a tick in which the class moved some", before, c.full.blocks)
	}
}

// A class that was at rest and moves blocks again comes to rest again, while
// others work: its stock goes home.
func TestClassRestsAgain(t *testing.T) {
	Groups(t, 1)
	h := newHeap(t, Options{})
	c, stock := &h.central[classFor(64, 1)], h.stock(classFor(64, 1), 0)
	rest := func() {
		t.Helper()
		for range 2 {
			keepBusy(t, h)
			h.Tick()
		}
		if !c.rested || stock.full.n != 0 || stock.empty.n != 0 {
			t.Errorf("at rest: %v, with %d magazines in stock, and %d without blocks", c.rested, stock.full.n, stock.empty.n)
		}
	}
	live := make([][]byte, 5000)
	allocAll := func() {
		for i := range live {
			live[i] = alloc(t, h, 64)
		}
	}
	freeAll := func() {
		for _, b := range live {
			h.Free(b)
		}
		if stock.full.n == 0 {
			t.Error("nothing is in stock")
		}
	}
	allocAll()
	rest()
	freeAll()
	allocAll() // from the stock, which leaves empty magazines
	rest()
	freeAll()
	rest()
}

// What a cache gives back to a class at rest goes on to the system, while other
// classes work.
func TestClassAtRestGivesBackWhatACacheReturned(t *testing.T) {
	h := newHeap(t, Options{})
	o := newProcessor(h)
	c := &h.central[classFor(4096, 1)]
	b, err := o.Alloc(4096, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	o.Free(b)
	for range 2 {
		keepBusy(t, h)
		h.Tick()
	}
	if !c.rested || c.spans != 1 {
		t.Fatalf("at rest: %v, with %d spans", c.rested, c.spans)
	}
	o.Close()
	keepBusy(t, h)
	h.Tick()
	if c.spans != 0 {
		t.Error("the span is still there")
	}
}

// Small blocks that were freed leave the heap without a Trim, caches included.
func TestTicksEmptyAnIdleHeap(t *testing.T) {
	h := newHeap(t, Options{})
	var live [][]byte
	for i := range 20000 {
		live = append(live, alloc(t, h, 1+i%2000))
	}
	for _, b := range live {
		h.Free(b)
	}
	for range 2 * ticksBetweenDrain {
		h.Tick()
	}
	h.check(t)
	if st := h.Stats(); st.Active != 0 || st.Committed != st.Metadata || st.Metadata > 1<<20 {
		t.Errorf("%+v", st)
	}
}

// The stock of a burst goes back though a few blocks of its class move between any two ticks: each of
// its blocks may be the last in a span.
func TestStockOfABurstGoesBackWhileItsClassIsBusy(t *testing.T) {
	Groups(t, 1)
	h := newHeap(t, Options{})
	for range 16 << 20 / 1024 { // so that the caches hold little, compared to what is live
		alloc(t, h, 1024)
	}
	few := func(n int) (live [][]byte) {
		for range n {
			live = append(live, alloc(t, h, 64))
		}
		return live
	}
	live := few(200_000)
	rand.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	for _, b := range live {
		h.Free(b)
	}
	c := h.stock(classFor(64, 1), 0)
	for range 3 {
		h.Tick()
		for _, b := range few(1000) {
			h.Free(b)
		}
	}
	if n := c.full.n; n == 0 || n > 1000/maxBatch+1 {
		t.Errorf("%d magazines in stock", n)
	}
	h.check(t)
}

// Ticks drain limbo at their third, though there is no cache.
func TestTicksDrainLimboWithoutCaches(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 1000)
	h.Trim()
	class, _ := home(h, b)
	h.central[class].shrink(h, false)
	if h.hasCaches() || h.limbo.bytes.Load() == 0 {
		t.Fatalf("caches: %v; %d bytes in limbo", h.hasCaches(), h.limbo.bytes.Load())
	}
	for range ticksBetweenDrain {
		h.Tick()
	}
	if n := h.limbo.bytes.Load(); n != 0 {
		t.Errorf("%d bytes in limbo", n)
	}
}

// Caches with less than minHoard bytes are no hoard, however little is live.
func TestSmallStockIsNoHoard(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 100))
	if n := h.count(); n.cached == 0 || n.cached > minHoard || h.cachesHoldMuch() {
		t.Errorf("%+v is a hoard", n)
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

// TrimAll trims what is open, while others open and close heaps.
func TestTrimAll(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 1<<20))
	done := make(chan bool)
	var others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			other := makeHeap(Options{Decay: -1})
			other.Free(alloc(t, other, 100))
			other.Close()
		}
	})
	for range 20 {
		TrimAll()
	}
	close(done)
	others.Wait()
	if st := h.Stats(); st.Active != 0 || st.Committed > 256<<10 {
		t.Errorf("after TrimAll %d bytes are committed, %d active", st.Committed, st.Active)
	}
	h.Close()
	if h.tryTrim() {
		t.Error("a closed heap was trimmed")
	}
}
