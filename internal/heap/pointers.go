// Pointers: C's interface of malloc, for callers that keep no sizes.

package heap

import (
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
)

const mallocAlign = 16

// Malloc returns size bytes at a multiple of 16, or nil if there is no memory. Size 0 gives a block
// too.
func (h *Heap) Malloc(size int) unsafe.Pointer {
	if size <= 0 {
		size = atLeastOne("Heap.Malloc", size)
	}
	return h.malloc(size, false)
}

// atLeastOne returns 1 for a size of 0.
func atLeastOne(call string, size int) int {
	arg.AtLeast(call, "size", size, 0)
	return 1
}

// Calloc returns n*size zero bytes.
func (h *Heap) Calloc(n, size int) unsafe.Pointer {
	arg.AtLeast("Heap.Calloc", "n", n, 0)
	arg.AtLeast("Heap.Calloc", "size", size, 0)
	high, bytes := bits.Mul(uint(n), uint(size))
	if high != 0 || bytes > maxSize {
		return nil
	}
	return h.malloc(max(int(bytes), 1), true)
}

func (h *Heap) malloc(size int, zero bool) unsafe.Pointer {
	b, err := h.Alloc(size, mallocAlign, zero)
	if err != nil {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(b))
}

// ReallocPointer makes the block at p size bytes long, by moving it if need be. It returns nil, and
// leaves p alone, if there is no memory. A block of Alloc that is at no multiple of 16 moves.
func (h *Heap) ReallocPointer(p unsafe.Pointer, size int) unsafe.Pointer {
	if size <= 0 {
		size = atLeastOne("Heap.ReallocPointer", size)
	}
	if p == nil {
		return h.malloc(size, false)
	}
	b := h.blockAt("Heap.ReallocPointer", p)
	if uintptr(p)%mallocAlign == 0 {
		if r, ok := h.resize("Heap.ReallocPointer", b, size); ok {
			return unsafe.Pointer(unsafe.SliceData(r))
		}
	}
	q := h.malloc(size, false)
	if q != nil {
		copy(unsafe.Slice((*byte)(q), size), unsafe.Slice((*byte)(p), h.UsableSize(p)))
		h.Free(b)
	}
	return q
}

// UsableSize returns the usable bytes of the block at p, at least its requested size. It is 0 for
// nil.
func (h *Heap) UsableSize(p unsafe.Pointer) int {
	if p == nil {
		return 0
	}
	b := h.blockAt("Heap.UsableSize", p)
	switch s := small.SpanAt(uintptr(p)); {
	case isWatched(s, h.pages.ID, uintptr(p)):
		return len(b) // so that a write behind it is found
	case s.Kind == pages.BlockRun:
		return int(s.Size)
	}
	return h.goodSize(len(b))
}
