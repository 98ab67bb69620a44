// Walk: a visit to every live block.
//
// A walk visits the runs of all segments in the order of their addresses. Others allocate
// and free meanwhile, so each block is looked at while a lock keeps its memory:
//
//	small block   its class's mu: no span of the class is freed
//	large block   the page heap's mu, which others may have after each part
//	watched one   what package watch holds
//	all of them   Scavenging: the heap is not closed, and no page purged

package heap

import (
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/watch"
)

// walkPart is how much of a large block is visited while others wait for mu, in bytes.
const walkPart = 256 << 10

// walk calls visit with each live block, a large one in parts; with none if h is closed. It
// may miss a block that is allocated, freed or resized meanwhile. visit must not call h.
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

// visitRun calls visit with the live blocks of the run at addr, and returns where to go on.
func (h *Heap) visitRun(addr uintptr, visit func(watch.Part)) (next uintptr) {
	kind, class := uint8(pages.FreeRun), uint8(0)
	next = h.pages.Look(addr, func(s *pages.Span) {
		kind, class = s.Kind, spanOf(s).class
	})
	switch kind {
	case pages.BlockRun:
		h.central[class].visit(h, addr, visit)
	case pages.LargeRun:
		for from := uintptr(0); h.visitLarge(addr, from, visit); from += walkPart {
			if onPart != nil {
				onPart()
			}
		}
	}
	return next
}

// visitLarge visits the part of a large block at from. It reports false if addr has no large
// block or it ends before.
func (h *Heap) visitLarge(addr, from uintptr, visit func(watch.Part)) (more bool) {
	h.pages.Look(addr, func(s *pages.Span) {
		size := largeSize(s)
		if more = s.Kind == pages.LargeRun && from < size; more {
			p := watch.Part{Block: s.Base, Size: size, From: from, To: min(from+walkPart, size)}
			h.visitPart(p, spanOf(s).isLargeWatched(), visit)
		}
	})
	return more
}

// largeSize returns the size of a large block, 0 if a cache keeps its run. Other goroutines
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

// onPart, if set, is called after each part of a large block, without mu. For tests.
var onPart func()

// visit visits the live blocks of the span of the class at addr, if there is one.
func (c *central) visit(h *Heap, addr uintptr, visit func(watch.Part)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s *span
	h.pages.Look(addr, func(run *pages.Span) {
		if in := spanOf(run); in.Kind == pages.BlockRun && in.class == c.class && in.Owner == h.pages.ID {
			s = in
		}
	})
	if s == nil {
		return // it was freed in the meantime
	}
	for i := range classes[c.class].blocks {
		if size, watched := s.liveSize(i); size > 0 {
			h.visitPart(watch.Part{Block: s.Base + i*s.Size, Size: size, To: size}, watched, visit)
		}
	}
}

// liveSize returns the size of block i if it is live, else 0, or that it is watched: package
// watch knows the size then, which is no more than the span's. Other goroutines allocate and
// free meanwhile.
//
//go:norace
func (s *span) liveSize(i uintptr) (size uintptr, isWatched bool) {
	switch st := *statusAt(s.statusOf(i)); {
	case st <= maxSmall:
		return uintptr(st), false
	case st == watched:
		return s.Size, true
	}
	return 0, false
}
