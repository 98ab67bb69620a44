// Debug builds: free blocks hold 0xDB.
//
// Free fills a small block, and Alloc checks the fill. Free also checks the bytes
// between the end of the block and the size of its class. The slow paths check the
// spans of their class, and the page heap each free run that it links.

//go:build freehold_debug

package heap

import "fmt"

const (
	debugging  = true
	poisonByte = 0xDB

	checkedSpans = 8 // in each slow path
)

// poison fills the size bytes at addr.
func poison(addr, size uintptr) {
	b := block(addr, int(size), false)
	for i := range b {
		b[i] = poisonByte
	}
}

// mustBeUntouched panics if a free block was written. was is its free status: a block
// never handed out reads zero, any other holds the fill.
func (h *Heap) mustBeUntouched(addr uintptr, class uint8, was uint16) {
	want := byte(poisonByte)
	if was == freeZero {
		want = 0
	}
	for i, c := range block(addr, int(classes[class].size), false) {
		if c != want {
			panic(fmt.Sprintf("freehold: heap %q: the byte at %#x, %d bytes into a free block, was written: after its Free, or beyond the end of another block", h.pages.name, addr+uintptr(i), i))
		}
	}
}

// mustEndUntouched panics if the bytes from the end of a live small block to the size of
// its class were written. They are 0 or the fill.
func (h *Heap) mustEndUntouched(b []byte) {
	e := liveEntry(h, b)
	if e.addr == 0 {
		return
	}
	size := spanAt(e.addr).size
	for i, c := range block(e.addr, int(size), false)[len(b):] {
		if c != 0 && c != poisonByte {
			panic(fmt.Sprintf("freehold: heap %q: the block of %d bytes at %#x was written %d bytes beyond its end", h.pages.name, len(b), e.addr, i))
		}
	}
}

// check verifies the invariants of a class. c.mu is held.
func (c *central) check(h *Heap) {
	stocked := 0
	for at := c.stock.head; at != 0; at = magazineAt(at).next {
		stocked += int(magazineAt(at).n)
	}
	if stocked != c.stocked || c.empty > c.spans {
		panic(fmt.Sprintf("freehold: heap %q: class %d: %d blocks stocked, counted %d; %d of %d spans empty", h.pages.name, c.class, stocked, c.stocked, c.empty, c.spans))
	}
	class := &classes[c.class]
	for n, at := 0, c.partial.head; at != 0 && n < checkedSpans; n, at = n+1, spanPtr(at).next {
		s := spanPtr(at)
		free := s.free.count(0, class.blocks)
		if s.kind != blockRun || s.class != c.class || s.owner != h.pages.id || free == 0 || free+uintptr(s.live) != class.blocks || spanAt(s.base) != s {
			panic(fmt.Sprintf("freehold: heap %q: class %d: %d blocks are free in span %+v", h.pages.name, c.class, free, *s))
		}
	}
}

// check verifies the invariants of a free run. mu is held.
func (p *pageHeap) check(r *region, s *span) {
	dirty := r.dirty.count(r.pageIndex(s.base), s.pages)
	if s.kind != freeRun || s.owner != p.id || s.dirty != dirty || p.freeNeighbour(r, s.base-pageBytes) != nil || p.freeNeighbour(r, s.end()) != nil {
		panic(fmt.Sprintf("freehold: heap %q: %d pages hold memory in free run %+v, or its neighbours are free", p.name, dirty, *s))
	}
}
