// Processors: slots of a heap that a test has chosen, so that it knows its caches.

package heap

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

// processor allocates from the cache of one slot and frees to it, whichever processor runs the
// test. One goroutine at a time uses it, and no other processor of the machine has the slot.
type processor struct {
	h    *Heap
	slot int
}

// newProcessor returns the one with the last slot of h.
func newProcessor(h *Heap) *processor { return newProcessors(h, 1)[0] }

// newProcessors returns those with the last n slots of h.
func newProcessors(h *Heap, n int) (all []*processor) {
	for i := range n {
		all = append(all, &processor{h, h.caches.Len() - 1 - i})
	}
	return all
}

// enter holds a slot of the machine, and p's with it. Without locks Leave is the same for both.
func (p *processor) enter() int {
	for {
		slot := p.h.caches.EnterAt(p.slot)
		if !pin.Locked || slot == p.slot {
			return p.slot
		}
		p.h.caches.Leave(slot)
		runtime.Gosched()
	}
}

// slow calls f, whose slow paths use p's slot.
func (p *processor) slow(f func()) {
	choose := func(h *Heap) int {
		if h == p.h {
			return p.enter()
		}
		return h.caches.Enter()
	}
	chooseSlot.Store(&choose)
	defer chooseSlot.Store(nil)
	f()
}

func (p *processor) cache() *cache { return p.h.caches.Entry(p.slot) }

func (p *processor) Alloc(size, align int, zero bool) (b []byte, err error) {
	slot := p.enter()
	at, _, _, _ := allocLeaf(p.h, size, align, zero, uintptr(slot))
	if size > maxSmall {
		at = allocRunLeaf(p.h, size, align, 0, uintptr(slot))
	}
	p.h.caches.Leave(slot)
	switch {
	case at == nil:
		p.slow(func() { b, err = p.h.allocSlow(size, align, zero) })
		return b, err
	case size > maxSmall:
		return p.h.cleared(at, size, zero), nil
	}
	return unsafe.Slice((*byte)(at), size), nil
}

func (p *processor) Free(b []byte) {
	slot := p.enter()
	done := len(b) <= maxSmall && freeLeaf(p.h, b, uintptr(slot)) ||
		len(b) > maxSmall && freeRunLeaf(p.h, addrOf(b), len(b), 0, uintptr(slot))
	p.h.caches.Leave(slot)
	if !done {
		p.slow(func() { p.h.freeSlow(b) })
	}
}

// Close returns what p's cache has to the heap.
func (p *processor) Close() {
	p.h.counting.Lock()
	defer p.h.counting.Unlock()
	slot := p.enter()
	c := p.h.caches.Take(slot)
	p.h.caches.Leave(slot)
	if c != &noCache {
		p.h.empty(c)
		p.h.pages.FreeObject(c.addr(), cacheBytes)
	}
}

// Around the end of a magazine a cache needs its central once a batch at most, in Go too.
func TestSpareMagazineSparesTheCentral(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	p := newProcessor(h)
	blocks := make([][]byte, 2*classes[classFor(64, 8)].batch) // as many as fit
	take := func(from, to int) {
		for i := range blocks[from:to] {
			blocks[from+i], _ = p.Alloc(64, 8, false)
		}
	}
	back := func(from, to int) {
		for _, b := range blocks[from:to] {
			p.Free(b)
		}
	}
	take(0, len(blocks))
	back(0, len(blocks))
	was := h.Stats()
	for n := len(blocks) / 2; n < len(blocks)/2+3; n++ {
		take(0, n)
		back(n-3, n)
		take(n-3, len(blocks))
		back(0, len(blocks))
		if err := p.cache().verify(); err != nil {
			t.Fatal(err)
		}
	}
	if st := h.Stats(); st.SlowAllocs != was.SlowAllocs || st.SlowFrees != was.SlowFrees {
		t.Errorf("%d allocs and %d frees went to the central", st.SlowAllocs-was.SlowAllocs, st.SlowFrees-was.SlowFrees)
	}
}
