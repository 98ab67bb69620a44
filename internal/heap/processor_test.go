// Processors: slots of a heap that a test has chosen, so that it knows its caches.

package heap

import (
	"runtime"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
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
	choose := func(t *caches) int {
		if t == &p.h.caches {
			return p.enter()
		}
		return t.Enter()
	}
	chooseSlot.Store(&choose)
	defer chooseSlot.Store(nil)
	f()
}

func (p *processor) cache() *cache { return p.h.caches.Value(p.slot) }

func (p *processor) Alloc(size, align int, zero bool) (b []byte, err error) {
	slot := p.enter()
	at, _, _, _ := allocLeaf(p.h, size, align, zero, uintptr(slot))
	if size > small.MaxSize {
		at = allocRunLeaf(p.h, size, align, 0, uintptr(slot))
	}
	p.h.caches.Leave(slot)
	switch {
	case at == nil:
		p.slow(func() { b, err = p.h.allocSlow(size, align, zero) })
		return b, err
	case size > small.MaxSize:
		return p.h.cleared(at, size, zero), nil
	}
	return unsafe.Slice((*byte)(at), size), nil
}

func (p *processor) Free(b []byte) {
	slot := p.enter()
	done := len(b) <= small.MaxSize && freeLeaf(p.h, b, uintptr(slot)) ||
		len(b) > small.MaxSize && freeRunLeaf(p.h, small.AddrOf(b), len(b), 0, uintptr(slot))
	p.h.caches.Leave(slot)
	if !done {
		p.slow(func() { p.h.freeSlow(b) })
	}
}

// Close returns what p's cache has to the heap.
func (p *processor) Close() {
	p.h.caches.counting.Lock()
	defer p.h.caches.counting.Unlock()
	if c := p.cache(); c != &noCache {
		c.since-- // as after ask
	}
	p.slow(p.h.caches.flushOwn)
}

const batch = 128 // blocks of 64 or 100 bytes in a magazine
