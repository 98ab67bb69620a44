// Walk: a visit to every live block.
//
// A walk visits the runs of each segment in the order of their addresses. Other goroutines may
// allocate and free meanwhile. So during the visit of a block, a lock keeps its memory from being
// freed:
//
//	small block   its class's lock: no span of the class is freed
//	large block   the page heap's lock, released after each part
//	watched one   the lock of package watch
//	all of them   Scavenging: the heap is not closed, and no page is purged

package heap

import (
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// walkPart is the part of a large block, in bytes, that is visited before the lock is released.
const walkPart = 256 << 10

// GoPointers returns the words of live blocks that are addresses in the Go heap: see package watch.
func (h *Heap) GoPointers() ([]watch.GoPointer, error) {
	h.mustBeMade("track.CheckPointers")
	return watch.GoPointers(h.walk)
}

// walk calls visit with each live block. It visits a large block in parts. A closed heap has no
// blocks. walk may miss a block that is allocated, freed or resized meanwhile. visit must not call
// h.
func (h *Heap) walk(visit func(watch.Part)) {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	for _, s := range h.pages.AllSegments() {
		for at := s.Base; at < s.Base+s.Size; {
			at = h.visitRun(at, visit)
		}
	}
	h.watch.EachGuarded(visit)
}

// visitRun calls visit with the live blocks of the run at addr, and returns the address of the next
// run.
func (h *Heap) visitRun(addr uintptr, visit func(watch.Part)) (next uintptr) {
	kind, class := uint8(pages.FreeRun), uint8(0)
	next = h.pages.Look(addr, func(s *pages.Span) {
		kind, class = s.Kind, small.SpanOf(s).Class()
	})
	switch kind {
	case pages.BlockRun:
		h.small.EachBlock(class, addr, func(block, size uintptr, watched bool) {
			h.visitPart(watch.Part{Block: block, Size: size, To: size}, watched, visit)
		})
	case pages.LargeRun:
		for from := uintptr(0); h.visitLarge(addr, from, visit); from += walkPart {
			if onPart != nil {
				onPart()
			}
		}
	}
	return next
}

// visitLarge visits the part of a large block that begins at from. It reports false if no large
// block is at addr, or if the block ends at or before from.
func (h *Heap) visitLarge(addr, from uintptr, visit func(watch.Part)) (more bool) {
	h.pages.Look(addr, func(s *pages.Span) {
		size := largeSize(s)
		if more = s.Kind == pages.LargeRun && from < size; more {
			p := watch.Part{Block: s.Base, Size: size, From: from, To: min(from+walkPart, size)}
			h.visitPart(p, isLargeWatched(s), visit)
		}
	})
	return more
}

// largeSize returns the size of a large block, or 0 if a cache keeps its run. Other goroutines may
// allocate and free it meanwhile.
//
//go:norace
func largeSize(s *pages.Span) uintptr { return s.Size }

// visitPart visits a part of a live block.
func (h *Heap) visitPart(p watch.Part, watched bool, visit func(watch.Part)) {
	if watched {
		h.watch.Visit(p, visit)
	} else {
		visit(p)
	}
}

// onPart, if set, is called after each part of a large block, without a lock. For tests.
var onPart func()
