// Alloc: the slow paths of Alloc, Free and Resize.
//
//	allocSlow -> allocUnwatched -> tryAlloc --+-- tryLarge: large.go
//	                                          +-- the cache, with its spare
//	                                          +-- a depot, in withReclaim
//	freeSlow --+-- package watch
//	           +-- freeLarge: large.go
//	           +-- the cache, with its spare
//	           +-- a depot

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

// allocSlow is Alloc after the leaf has failed.
func (h *Heap) allocSlow(size, align int, zero bool) ([]byte, error) {
	r := request{size: size, align: align, zero: zero, counts: true}
	b, err := h.allocUnwatched(&r)
	if r.due {
		return h.watch.Alloc(b, align, zero)
	}
	return b, err
}

// mallocSlow is Malloc after the fast path has failed.
func (h *Heap) mallocSlow(size int) unsafe.Pointer {
	if size <= 0 {
		size = atLeastOne("Heap.Malloc", size)
	}
	b, _ := h.allocSlow(size, mallocAlign, false)
	return unsafe.Pointer(unsafe.SliceData(b))
}

// mallocAlign is the alignment of Malloc.
const mallocAlign = 16

// atLeastOne returns 1 for a size of 0. It panics in the name of call for a size below.
func atLeastOne(call string, size int) int {
	arg.AtLeast(call, "size", size, 0)
	return 1
}

// allocUnwatched allocates a block that is not watched yet. If the heap is out of memory, package
// watch releases the freed blocks that it keeps, and allocUnwatched tries again.
func (h *Heap) allocUnwatched(r *request) ([]byte, error) {
	b, err := h.tryAlloc(r)
	if err != nil && h.watch.Release() {
		b, err = h.tryAlloc(r)
	}
	if err != nil {
		return nil, h.refuse(allocCall(r.zero), err)
	}
	return b, nil
}

// tryAlloc is allocUnwatched without the second try.
func (h *Heap) tryAlloc(r *request) (b []byte, err error) {
	class := small.ClassFor(r.size, r.align)
	if class == 0 || h.pages.WholePages {
		return h.tryLarge(r)
	}
	slot := h.caches.enter()
	c := h.caches.Value(slot)
	if c == nil {
		h.caches.Leave(slot)
		panicNotMade(allocCall(r.zero))
	}
	addr, was := c.Alloc(class, r.size)
	if addr != 0 && r.counts {
		r.due = c.due(r.size)
	}
	stale := h.caches.isStale(c)
	h.caches.Leave(slot)
	if addr == 0 {
		if stale {
			h.caches.renew(slot)
		}
		err := h.withReclaim(small.SpanPages(class), true, func() (err error) {
			addr, was, err = h.small.AllocFromDepot(&h.caches, class, slot, r.size)
			return err
		})
		if err != nil && err != pages.ErrClosed && h.mayTakePage(class, r.size) {
			if b, err = h.newLarge(r); err == nil {
				h.grown()
			}
		}
		if err != nil {
			return nil, err
		}
		r.due = r.counts && watch.Due(r.size)
		if b != nil {
			return b, nil
		}
	}
	if !small.IsFree(was) {
		freedTwice(allocCall(r.zero), addr)
	}
	return block(addr, r.size, r.zero && was != small.FreeZero), nil
}

// mayTakePage reports whether a small block may have pages of its own after its class got no span.
// One of three conditions suffices. The block is larger than half a page. The heap has no limit, so
// the system has refused the span. Fewer than 64 spans of the class fit into the limit. In all
// other cases, many small blocks with a page each could fill the heap.
func (h *Heap) mayTakePage(class uint8, size int) bool {
	const spansOfALowLimit = 64
	limit := h.pages.Limit()
	return size > pages.PageBytes/2 || limit == 0 || small.SpanPages(class)*pages.PageBytes > limit/spansOfALowLimit
}

// freeSlow is Free after the leaf has failed. The loaded magazine is full, or b is large or
// watched, or b is not a live block.
func (h *Heap) freeSlow(b []byte) { h.freeIn(small.SpanAt(small.AddrOf(b)), b) }

// freeIn is freeSlow with the span to which the page map leads from b, or nil.
func (h *Heap) freeIn(s *small.Span, b []byte) {
	addr := small.AddrOf(b)
	if isWatched(s, h.pages.ID, addr) {
		if h.watch.Free("Heap.Free", &s.Span, b) {
			return
		}
		if !isWatched(s, h.pages.ID, addr) { // its sample has ended
			h.Free(b)
			return
		}
	}
	if s == nil || s.Kind != pages.BlockRun {
		h.freeLarge(s, b)
		return
	}
	class := s.Class()
	slot := h.caches.enter()
	c := h.caches.Value(slot)
	if c == nil { // of the zero Heap
		h.caches.Leave(slot)
		h.misused("Heap.Free", b)
	}
	freed := false
	if e := h.small.LiveEntry(class, b); e.Addr != 0 {
		freed = c.Free(class, e)
	}
	stale := h.caches.isStale(c)
	h.caches.Leave(slot)
	if freed {
		return
	}
	if stale {
		h.caches.renew(slot)
	}
	if !h.small.FreeToDepot(&h.caches, class, slot, b) {
		h.misused("Heap.Free", b)
	}
	if h.small.DrainIsDue() {
		h.drainLimbo()
	}
}

// drainLimbo drains the caches, unless another goroutine scavenges or has drained or closed h.
func (h *Heap) drainLimbo() {
	if !h.pages.Scavenging.TryLock() {
		return
	}
	defer h.pages.Scavenging.Unlock()
	if h.small.DrainIsDue() {
		h.caches.drain()
	}
}

// freePointerSlow is FreePointer after the leaf has failed. It ignores nil.
func (h *Heap) freePointerSlow(p unsafe.Pointer) {
	if p != nil {
		s := small.SpanAt(uintptr(p))
		h.freeIn(s, h.blockAt("Heap.FreePointer", s, p))
	}
}

// blockAt returns the live block that begins at p. s is the span to which the page map leads from
// p, or nil. blockAt panics in the name of call if there is no block.
func (h *Heap) blockAt(call string, s *small.Span, p unsafe.Pointer) []byte {
	addr := uintptr(p)
	switch {
	case isWatched(s, h.pages.ID, addr):
		if b := h.watch.Block(call, addr); b != nil {
			return b
		}
	case s != nil:
		size := s.Size
		if s.Kind == pages.BlockRun {
			size = uintptr(*s.Status(addr))
		}
		if s.IsBlock(h.pages.ID, addr, size) || s.IsLarge(h.pages.ID, addr, size) {
			return unsafe.Slice((*byte)(p), size)
		}
	}
	h.misused(call, unsafe.Slice((*byte)(p), 1))
	return nil
}

// resize is Resize of a block that is not empty. It panics in the name of call.
func (h *Heap) resize(call string, b []byte, size int) ([]byte, bool) {
	r, ok, live := h.resizeSmall(b, size)
	if !live {
		addr := small.AddrOf(b)
		s := small.SpanAt(addr)
		if isWatched(s, h.pages.ID, addr) {
			return h.watch.Resize(call, b, size)
		}
		r, ok = h.resizeOther(call, s, b, size)
	}
	if ok {
		h.watch.Resized(r)
	}
	return r, ok
}

// resizeSmall is resize of an unwatched small block. live is false for anything else.
func (h *Heap) resizeSmall(b []byte, size int) (r []byte, ok, live bool) {
	slot := h.caches.enter()
	if h.caches.Value(slot) != nil { // it is nil in the zero Heap
		ok, live = h.small.Resize(b, size)
	}
	h.caches.Leave(slot)
	if ok {
		r = block(small.AddrOf(b), size, false)
	}
	return r, ok, live
}

// resizeBlock is resize of an unwatched block.
func (h *Heap) resizeBlock(call string, b []byte, size int) ([]byte, bool) {
	if r, ok, live := h.resizeSmall(b, size); live {
		return r, ok
	}
	return h.resizeOther(call, small.SpanAt(small.AddrOf(b)), b, size)
}

// resizeOther is resize of an unwatched block that is not a live small one. s is the span to which
// the page map leads from b.
func (h *Heap) resizeOther(call string, s *small.Span, b []byte, size int) ([]byte, bool) {
	if s == nil || !s.IsLarge(h.pages.ID, small.AddrOf(b), uintptr(len(b))) {
		h.misused(call, b)
	}
	return h.resizeLarge(call, s, b, size)
}

// goodSize is GoodSize of a block without red zones.
func (h *Heap) goodSize(size int) int {
	switch {
	case size <= 0:
		return 0
	case size <= small.MaxSize && !h.pages.WholePages:
		return small.ClassSize(small.ClassOf(size, 1))
	case size > maxSize:
		return size
	}
	return int(vm.RoundUp(uintptr(size), pages.PageBytes))
}
