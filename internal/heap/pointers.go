// Pointers: the interface of C's malloc, for callers that keep no sizes.

package heap

import (
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
)

// Calloc returns n*size zero bytes, at least one. It returns nil if there is no memory.
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

// ReallocPointer resizes the block at p to size bytes, and moves it if necessary. If there is no
// memory, it returns nil and leaves the block as it is. A block of Alloc whose address is not a
// multiple of 16 always moves.
func (h *Heap) ReallocPointer(p unsafe.Pointer, size int) unsafe.Pointer {
	if size <= 0 {
		size = atLeastOne("Heap.ReallocPointer", size)
	}
	if p == nil {
		return h.malloc(size, false)
	}
	b := h.blockAt("Heap.ReallocPointer", small.SpanAt(uintptr(p)), p)
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

// UsableSize returns the number of bytes that the caller may use at p, which is at least the
// requested size. It is 0 if p is nil.
func (h *Heap) UsableSize(p unsafe.Pointer) int {
	if p == nil {
		return 0
	}
	s := small.SpanAt(uintptr(p))
	b := h.blockAt("Heap.UsableSize", s, p)
	switch {
	case isWatched(s, h.pages.ID, uintptr(p)):
		return len(b) // its requested size, so that package watch finds a write beyond it
	case s.Kind == pages.BlockRun:
		return int(s.Size)
	}
	return h.goodSize(len(b))
}
