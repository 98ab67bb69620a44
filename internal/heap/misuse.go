// Misuse: errors, and panics that say what was wrong with an argument.

package heap

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// refuse turns the error of a failed allocation into the error of call. After Close it
// panics.
func (h *Heap) refuse(call string, err error) error {
	if err == errClosed {
		h.mustBeOpen(call)
	}
	h.refused.Add(1)
	if errors.Is(err, ErrOutOfMemory) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOutOfMemory, err)
}

// allocCall returns the exported name of Alloc or Zeroed: of a Cache if o is not nil,
// else of a Heap. It allocates nothing.
func allocCall(o *LocalCache, zero bool) string {
	switch {
	case o != nil && zero:
		return "Cache.Zeroed"
	case o != nil:
		return "Cache.Alloc"
	case zero:
		return "Heap.Zeroed"
	}
	return "Heap.Alloc"
}

// freeCall is allocCall for Free.
func freeCall(o *LocalCache) string {
	if o != nil {
		return "Cache.Free"
	}
	return "Heap.Free"
}

// mustBeMade panics in the name of call if h is the zero Heap. It alone has no slots.
func (h *Heap) mustBeMade(call string) {
	if h.caches.Len() == 0 {
		panicNotMade(call)
	}
}

func panicNotMade(call string) { arg.Panicf(call, "zero value: NewHeap makes a Heap") }

// mustBeOpen panics in the name of call if h is the zero Heap, and after Close.
func (h *Heap) mustBeOpen(call string) {
	h.mustBeMade(call)
	if h.pages.closed.Load() {
		arg.Panicf(call, "heap %q is closed", h.pages.name)
	}
}

func freedTwice(call string, addr uintptr) {
	arg.Panicf(call, "the block at %#x was freed by two goroutines at once; found when it was allocated again", addr)
}

// misused panics with what is wrong with b, which is not a live block of h.
func (h *Heap) misused(call string, b []byte) {
	h.mustBeOpen(call)
	arg.Panicf(call, "%#x on heap %q: %s", unsafe.SliceData(b), h.pages.name, h.diagnose(call, b))
}

func (h *Heap) diagnose(call string, b []byte) (says string) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	r := addresses.regionOf(addr)
	if r == nil || atomic.LoadUint32(r.owner(addr)) == 0 {
		const foreign = "the memory is not from a freehold heap"
		switch call {
		case "Heap.FreePointer", "Heap.ReallocPointer", "Heap.UsableSize": // of no slice
			return foreign
		}
		return foreign + "; was it moved by append?"
	}
	if atomic.LoadUint32(r.owner(addr)) != h.pages.id {
		return "the memory belongs to another heap"
	}
	if s := spanAt(addr); s != nil && s.kind == guardRun {
		return h.diagnoseGuarded(s, b)
	}
	h.pages.lookAround(addr, func(s *pspan) { says = h.diagnoseRun(spanOf(s), b) })
	return says
}

// diagnoseRun is diagnose of b in the run s, or in none if s is nil. The page heap's mu is held.
func (h *Heap) diagnoseRun(s *span, b []byte) string {
	addr := addrOf(b)
	if s == nil || s.kind == freeRun {
		return "no block begins there; it was freed before (double free), or never allocated"
	}
	base, size := s.base, s.size
	if s.kind == blockRun {
		i := s.index(addr)
		for i > 0 && s.base+i*s.size > addr {
			i--
		}
		base, size = s.base+i*s.size, uintptr(*statusAt(s.statusOf(i)))
	}
	if n := h.sampledSize(s, base); n != 0 {
		size = n
	}
	switch {
	case s.kind == blockRun && (size >= freeZero || size == inLimbo):
		return "the block is free; it was freed before (double free), or never allocated"
	case base != addr:
		return fmt.Sprintf("it points %s into a block of %s", arg.Bytes(int(addr-base)), arg.Bytes(int(userBytes(size))))
	}
	return fmt.Sprintf("it has %s, the block %d; a block is freed whole", arg.Bytes(len(b)), userBytes(size))
}
