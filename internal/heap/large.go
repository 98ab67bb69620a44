// Large blocks: runs of pages, one block each.
//
//	Alloc --+-- the leaf: a run from the processor's cache
//	        +-- allocSlow, tryAlloc -> tryLarge --+-- takeRun: the cache again
//	                                              +-- allocLarge -> newLarge -> AllocBlock
//
//	Free --+-- the leaf: the cache keeps the run
//	       +-- freeSlow -> freeLarge --+-- keepRun: the same, after other runs were evicted
//	                                   +-- FreeBlock: the page heap takes the run
//
// Each call tries the upper branch first. The leaves are in leaf.go, the other functions before
// tryLarge and freeLarge in alloc.go, the kept runs in keptruns.go, and AllocBlock and FreeBlock in
// package pages. allocLarge calls newLarge in withReclaim.

package heap

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

const maxSize = math.MaxInt/2 - pages.SegmentBytes // exceeds any address space

// request is what Alloc was asked for, on its way through the slow paths.
type request struct {
	size, align int
	zero        bool
	counts      bool // the block counts down to the next watched block
	due         bool // result: the countdown ended with this block, so package watch may watch it
}

// tryLarge is tryAlloc of a large block, or of any block in a heap with WholePages. It asks the
// cache again, which may have a run: the fast path also fails if the countdown ends or, in assembly,
// if the block is to be cleared.
func (h *Heap) tryLarge(r *request) (b []byte, err error) {
	if r.size > small.MaxSize {
		if p := h.takeRun(r); p != nil {
			return h.cleared(p, r.size, r.zero), nil
		}
	}
	b, err = h.allocLarge(r)
	if err == nil && r.counts {
		r.due = watch.Due(r.size)
	}
	return b, err
}

// takeRun takes a block from the processor's cache, or returns nil. If a cache has none and is
// stale, takeRun renews it.
func (h *Heap) takeRun(r *request) (p unsafe.Pointer) {
	stale := false
	slot := h.caches.enter()
	if c := h.caches.Value(slot); c != nil { // it is nil in the zero Heap
		stale = c != &noCache && h.caches.isStale(c)
		if s := c.runs.find(uintptr(r.size), uintptr(r.align)); s != nil {
			if r.counts {
				r.due = c.due(r.size)
			}
			p = c.runs.take(s, uintptr(r.size))
		}
	}
	h.caches.Leave(slot)
	if p == nil && stale {
		h.caches.renew(slot)
	}
	return p
}

// allocLarge allocates a run. It panics for bad arguments.
func (h *Heap) allocLarge(r *request) (b []byte, err error) {
	call := allocCall(r.zero)
	arg.AtLeast(call, "size", r.size, 0)
	arg.Align(call, r.align)
	h.mustBeOpen(call)
	if r.size == 0 {
		return []byte{}, nil
	}
	if r.size > maxSize || r.align > maxSize || uintptr(r.size)+uintptr(r.align) > maxSize {
		return nil, fmt.Errorf("%w: %s at a multiple of %d are more than an address space has", pages.ErrOutOfMemory, arg.Bytes(r.size), r.align)
	}
	err = h.withReclaim(vm.RoundUp(uintptr(r.size), pages.PageBytes)/pages.PageBytes, false, func() (err error) {
		b, err = h.newLarge(r)
		return err
	})
	return b, err
}

// newLarge is allocLarge without reclaim and checks.
func (h *Heap) newLarge(r *request) ([]byte, error) {
	s, err := h.pages.AllocBlock(uintptr(r.size), uintptr(r.align), r.zero)
	if err != nil {
		return nil, err
	}
	return block(s.Base, r.size, false), nil
}

// cleared returns the size bytes at p as a slice. The memory may be dirty: if zero is set, cleared
// clears it.
func (h *Heap) cleared(p unsafe.Pointer, size int, zero bool) []byte {
	if zero {
		h.clear(uintptr(p), uintptr(size))
	}
	return unsafe.Slice((*byte)(p), size)
}

// clear is separate, so that cleared is inlined.
//
//go:noinline
func (h *Heap) clear(addr, size uintptr) { h.pages.Clear(addr, size) }

// freeLarge is Free of b, which is not in a block run. s is the run of b, or nil. freeLarge panics
// for misuse, but ignores a slice without capacity that is not in a heap's memory.
func (h *Heap) freeLarge(s *small.Span, b []byte) {
	addr := small.AddrOf(b)
	switch {
	case s != nil && h.keepRun(&s.Span, b):
	case s != nil && h.pages.FreeBlock(&s.Span, addr, uintptr(len(b))):
	case cap(b) == 0 && pages.Addresses.RegionOf(addr) == nil:
	default:
		h.misused("Heap.Free", b)
	}
}

// keepRun keeps the run s of b in the cache after the fast path has failed: the cache had no room.
// It reports false if b is not a large block that a cache may keep.
func (h *Heap) keepRun(s *pages.Span, b []byte) (kept bool) {
	addr := small.AddrOf(b)
	if !s.IsLarge(h.pages.ID, addr, uintptr(len(b))) || !isPlain(s) || s.Pages() > maxKeptPages {
		return false
	}
	slot := h.caches.enter()
	c := h.caches.Value(slot)
	kept = c.runs.hasRoom(s.Pages()) && c.runs.keepLive(s, addr, uintptr(len(b)))
	before := c.runs.longest
	h.caches.Leave(slot)
	if kept {
		return true
	}
	most, longest := mostKept(&h.pages)
	if longest == 0 && before == 0 {
		return false
	}
	slot = h.caches.enter()
	c = h.caches.Value(slot)
	if c != &noCache {
		c.runs.mostHeld, c.runs.longest = most, longest
	}
	evicted := c.runs.evict(s.Pages())
	kept = c.runs.hasRoom(s.Pages()) && c.runs.keepLive(s, addr, uintptr(len(b)))
	stale := h.caches.isStale(c)
	h.caches.Leave(slot)
	if stale {
		h.caches.renew(slot)
	}
	h.pages.FreeRuns(evicted)
	return kept
}

// resizeLarge is resize of b, which was the large block of s when the caller looked. Another
// goroutine may have freed or resized it since, and then resizeLarge panics.
func (h *Heap) resizeLarge(call string, s *small.Span, b []byte, size int) ([]byte, bool) {
	// If a large block shrinks to a small size, the result is false: the caller then copies it to a
	// small block, and its pages are freed. A block of a small size may have pages of its own: see
	// mayTakePage. It is resized within them.
	old := uintptr(len(b))
	if size > maxSize || size <= small.MaxSize && !h.pages.WholePages && (old > small.MaxSize || uintptr(size) > vm.RoundUp(old, pages.PageBytes)) {
		return nil, false
	}
	at, live := h.pages.ResizeBlock(&s.Span, small.AddrOf(b), old, uintptr(size))
	if !live {
		h.misused(call, b)
	}
	if at == nil {
		return nil, false
	}
	h.grown()
	return block(at.Base, size, false), true
}
