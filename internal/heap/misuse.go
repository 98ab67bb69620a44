// Misuse: errors, and panics that name the mistake in an argument.

package heap

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
)

// refuse turns the error of a failed allocation into the error of call. After Close it panics.
func (h *Heap) refuse(call string, err error) error {
	if err == pages.ErrClosed {
		h.mustBeOpen(call)
	}
	h.refused.Add(1)
	if errors.Is(err, pages.ErrOutOfMemory) {
		return err
	}
	return fmt.Errorf("%w: %w", pages.ErrOutOfMemory, err)
}

// allocCall returns the exported name of the call, for messages.
func allocCall(zero bool) string {
	if zero {
		return "Heap.Zeroed"
	}
	return "Heap.Alloc"
}

// mustBeMade panics in the name of call if h is the zero Heap. Only the zero Heap has no slots.
func (h *Heap) mustBeMade(call string) {
	if h.caches.Len() == 0 {
		panicNotMade(call)
	}
}

func panicNotMade(call string) { arg.Panicf(call, "zero value: NewHeap makes a Heap") }

// mustBeOpen panics in the name of call if h is the zero Heap or is closed.
func (h *Heap) mustBeOpen(call string) {
	h.mustBeMade(call)
	if h.pages.Closed.Load() {
		arg.Panicf(call, "heap %q is closed", h.pages.Name)
	}
}

// Pages returns the heap of pages. It panics as mustBeOpen does.
func (h *Heap) Pages(call string) *pages.Heap {
	h.mustBeOpen(call)
	return &h.pages
}

func freedTwice(call string, addr uintptr) {
	arg.Panicf(call, "the block at %#x was freed by two goroutines at once; found when it was allocated again", addr)
}

// misused panics and names the mistake in b, which is not a live block of h.
func (h *Heap) misused(call string, b []byte) {
	h.mustBeOpen(call)
	arg.Panicf(call, "%#x on heap %q: %s", unsafe.SliceData(b), h.pages.Name, h.diagnose(call, b))
}

func (h *Heap) diagnose(call string, b []byte) (says string) {
	addr := small.AddrOf(b)
	r := pages.Addresses.RegionOf(addr)
	if r == nil {
		const foreign = "the memory is not from a freehold heap"
		switch call {
		case "Heap.FreePointer", "Heap.ReallocPointer", "Heap.UsableSize": // no slice
			return foreign
		}
		return foreign + "; was it moved by append?"
	}
	switch owner := atomic.LoadUint32(r.Owner(addr)); owner {
	case h.pages.ID:
	case 0:
		return "the memory belongs to no open heap; was its heap closed?"
	default:
		return "the memory belongs to another heap" + quotedName(owner)
	}
	if s := pages.SpanAt(addr); s != nil && s.Kind == pages.GuardRun {
		return h.watch.Describe(b)
	}
	h.pages.LookAround(addr, func(s *pages.Span) { says = h.diagnoseRun(s, b) })
	return says
}

// quotedName returns the name of the open heap with that ID as the end of a message, or "" if there
// is none. The caller holds no lock of a heap.
func quotedName(id uint32) (name string) {
	EachOpen(func(h *Heap) {
		if h.pages.ID == id {
			name = fmt.Sprintf(", %q", h.pages.Name)
		}
	})
	return name
}

// diagnoseRun is diagnose for b in the run s. s is nil if b is in no run. The page heap's mu is
// held.
func (h *Heap) diagnoseRun(s *pages.Span, b []byte) string {
	addr := small.AddrOf(b)
	if s == nil || s.Kind == pages.FreeRun {
		return "no block begins there; it was freed before (double free), or never allocated"
	}
	base, size, free := s.Base, s.Size, s.Size == 0
	if s.Kind == pages.BlockRun {
		var status uint16
		base, status = small.SpanOf(s).BlockAround(addr)
		size, free = uintptr(status), status == 0 || status == small.InLimbo || small.IsFree(status)
	}
	if isWatched(small.SpanOf(s), h.pages.ID, base) {
		size = h.watch.Size(base)
		free = size == 0
	}
	switch {
	case free:
		return "the block is free; it was freed before (double free), or never allocated"
	case base != addr:
		return fmt.Sprintf("it points %s into a block of %s", arg.Bytes(int(addr-base)), arg.Bytes(int(size)))
	}
	return fmt.Sprintf("it has %s, the block %d; a block is freed whole", arg.Bytes(len(b)), size)
}
