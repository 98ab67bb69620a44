// Words: live blocks searched for pointers into the Go heap.
//
// A walk visits the runs of all segments in the order of their addresses. Others allocate
// and free meanwhile, so each block is looked at while a lock keeps its memory:
//
//	small block   its class's mu: no span of the class is freed
//	large block   the page heap's mu, which others may have after each part
//	guarded one   that of the guards: none is freed
//	all of them   Scavenging: the heap is not closed, and no page purged
//
// What other goroutines write to their blocks meanwhile is read as it is: a word is old or
// new. The race detector does not look at these reads.

package heap

import (
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/internal/vm"
)

// wordsPart is how much of a large block is read while others wait for mu, in bytes.
const wordsPart = 256 << 10

// GoPointer is a word of a live block that is an address in the Go heap.
type GoPointer struct {
	Block  uintptr   // address
	Size   int       // of the block
	Offset int       // of the word
	Word   uintptr   // its value
	Stack  []uintptr // of the allocation, as in Usage; nil unless the block is sampled
}

// part is a part of a live block.
type part struct{ block, size, from, to uintptr }

// GoPointers returns the aligned words of live blocks that are addresses in the Go heap, in
// the order of their addresses; none for a closed heap. The error says that the build
// cannot tell.
func (h *Heap) GoPointers() (all []GoPointer, err error) {
	h.mustBeMade("track.CheckPointers")
	if err := canTellGoPointers(); err != nil {
		return nil, err
	}
	h.eachPart(func(p part) {
		if h.checks == nil {
			all = p.appendGoPointers(all)
		} else {
			h.checks.visit(p, func(p part) { all = p.appendGoPointers(all) })
		}
	})
	return all, nil
}

//go:norace
func (p part) appendGoPointers(all []GoPointer) []GoPointer {
	for at := p.from; at+pages.WordBytes <= p.to; at += pages.WordBytes {
		if word := *(*uintptr)(vm.Pointer(p.block + at)); isGoPointer(word) && pages.Addresses.RegionOf(word) == nil {
			all = append(all, GoPointer{p.block, int(p.size), int(at), word, stackOf(p.block)})
		}
	}
	return all
}

// stackOf returns the stack of the allocation of the block at addr, nil if it has no record.
func stackOf(addr uintptr) []uintptr {
	id, _ := bucketOf(addr)
	pcs, _ := samples.stacks.Stack(id)
	return pcs
}

// bucketOf returns the bucket and the size in the record of the block at addr, 0 if it has
// none.
func bucketOf(addr uintptr) (id stacks.ID, size uintptr) {
	samples.mu.Lock()
	defer samples.mu.Unlock()
	if r := recordOf(addr); r != nil {
		return r.bucket, r.size
	}
	return 0, 0
}

// eachPart calls visit with each live block, a large one in parts. It may miss a block that
// is allocated, freed or resized meanwhile. visit must not call h.
func (h *Heap) eachPart(visit func(part)) {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	for _, s := range h.pages.AllSegments() {
		for at := s.Base; at < s.Base+s.Size; {
			at = h.visitRun(at, visit)
		}
	}
	if g := h.guards.Load(); g != nil {
		g.visit(visit)
	}
}

// visitRun calls visit with the live blocks of the run at addr, and returns where to go on.
func (h *Heap) visitRun(addr uintptr, visit func(part)) (next uintptr) {
	kind, class := uint8(pages.FreeRun), uint8(0)
	next = h.pages.Look(addr, func(s *pages.Span) {
		kind, class = s.Kind, spanOf(s).class
	})
	switch kind {
	case pages.BlockRun:
		h.central[class].visit(h, addr, visit)
	case pages.LargeRun:
		for from := uintptr(0); h.visitLarge(addr, from, visit); from += wordsPart {
			if onPart != nil {
				onPart()
			}
		}
	}
	return next
}

// visitLarge visits the part of a large block at from. It reports false if addr has no large
// block or it ends before.
func (h *Heap) visitLarge(addr, from uintptr, visit func(part)) (more bool) {
	h.pages.Look(addr, func(s *pages.Span) {
		if more = s.Kind == pages.LargeRun && from < s.Size; more {
			visit(part{s.Base, s.Size, from, min(from+wordsPart, s.Size)})
		}
	})
	return more
}

// visit calls visit with what is the user's of a part of the engine's block, if that is live.
// It stays live meanwhile.
func (c *checks) visit(p part, visit func(part)) {
	if spanAt(p.block).Kind == pages.GuardRun {
		visit(p)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.blocks[p.block]; k.live {
		p.size = uintptr(k.size)
		p.to = min(p.to, p.size)
		visit(p)
	}
}

// onPart, if set, is called after each part of a large block, without mu. For tests.
var onPart func()

// visit visits the live blocks of the span of the class at addr, if there is one.
func (c *central) visit(h *Heap, addr uintptr, visit func(part)) {
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
		if block, size := s.Base+i*s.Size, s.liveSize(i); size > 0 {
			visit(part{block, size, 0, size})
		}
	}
}

// visit visits the live guarded blocks.
func (g *guards) visit(visit func(part)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.eachRun(func(s *span) {
		if s.live == 1 {
			visit(part{s.block, s.Size, 0, s.Size})
		}
	})
}

// liveSize returns the size of block i if it is live, else 0. Other goroutines allocate and
// free meanwhile.
//
//go:norace
func (s *span) liveSize(i uintptr) uintptr {
	switch st := *statusAt(s.statusOf(i)); {
	case st <= maxSmall:
		return uintptr(st)
	case st == sampled:
		_, size := bucketOf(s.Base + i*s.Size)
		return size
	}
	return 0
}

// Of returns the heap inside a *freehold.Heap, whose package sets it.
var Of func(h any) *Heap
