// Misuse: what was wrong with a slice that Free or Resize was given.

package heap

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// refuse turns what kept a block from being allocated into Alloc's error.
func (h *Heap) refuse(err error) error {
	if err == errClosed {
		panic(h.closedMessage("Alloc"))
	}
	h.refused.Add(1)
	if errors.Is(err, ErrOutOfMemory) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOutOfMemory, err)
}

func (h *Heap) closedMessage(call string) string {
	return fmt.Sprintf("freehold: %s on heap %q after Close", call, h.pages.name)
}

func freedTwice(addr uintptr) {
	panic(fmt.Sprintf("freehold: the block at %#x was freed by two goroutines at once; found when it was allocated again", addr))
}

// misused panics with what is wrong with b, which is not a live block of h.
func (h *Heap) misused(call string, b []byte) {
	if h.pages.closed.Load() {
		panic(h.closedMessage(call))
	}
	panic(fmt.Sprintf("freehold: %s of %#x on heap %q: %s", call, unsafe.SliceData(b), h.pages.name, h.diagnose(call, b)))
}

func (h *Heap) diagnose(call string, b []byte) string {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	r := addresses.regionOf(addr)
	if r == nil || atomic.LoadUint32(r.owner(addr)) == 0 {
		fault := "the memory is not from a freehold heap"
		if call == "Free" || call == "Resize" { // of a slice
			fault += "; was it moved by append?"
		}
		return fault
	}
	if atomic.LoadUint32(r.owner(addr)) != h.pages.id {
		return "the memory belongs to another heap"
	}
	h.pages.mu.Lock()
	defer h.pages.mu.Unlock()
	s := r.spanAround(addr)
	if s == nil || s.kind == freeRun {
		return "no block begins there; it was freed before (double free), or never allocated"
	}
	base, size := s.base, s.size
	if s.kind == blockRun {
		i := s.index(addr)
		for i > 0 && s.base+i*s.size > addr {
			i--
		}
		base, size = s.base+i*s.size, uintptr(*state(s.stateOf(i)))
	}
	switch {
	case s.kind == blockRun && (size >= freeZero || size == gone):
		return "the block is free; it was freed before (double free), or never allocated"
	case base != addr:
		return fmt.Sprintf("it points %d bytes into a block of %d bytes", addr-base, size)
	}
	return fmt.Sprintf("it has %d bytes, the block %d; a block is freed whole", len(b), size)
}

// spanAround returns the span of the run that addr lies in, looking at each page
// before addr. Precondition: the lock of the heap there is held, or addr lies in
// a live block.
func (r *region) spanAround(addr uintptr) *span {
	owner := atomic.LoadUint32(r.owner(addr))
	for at := addr; at-r.base < r.used.Load() && atomic.LoadUint32(r.owner(at)) == owner; at -= pageBytes {
		if s := *r.page(at); s != nil {
			if addr >= s.base && addr < s.end() {
				return s
			}
			return nil
		}
	}
	return nil
}
