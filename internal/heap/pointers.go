// Pointers: malloc's own interface, for callers that keep no sizes.

package heap

import (
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
)

const mallocAlign = 16

// Malloc returns size bytes at a multiple of 16, nil if there is no memory.
// Size 0 gives a block of its own.
func (h *Heap) Malloc(size int) unsafe.Pointer {
	if size <= 0 {
		size = atLeastOne("Heap.Malloc", size)
	}
	return h.malloc(size, false)
}

// atLeastOne returns 1 for a size of 0: the block is one all the same.
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

// freePointerSlow is FreePointer by way of Free, which looks the block up again.
func (h *Heap) freePointerSlow(p unsafe.Pointer) {
	if p == nil || h.freeRunPointer(uintptr(p)) {
		return
	}
	h.Free(h.blockAt("Heap.FreePointer", p))
}

// ReallocPointer makes the block at p size bytes long, by moving it if need
// be. It returns nil, and leaves p alone, if there is no memory. A block of Alloc
// may lie where Malloc puts none, and is moved then.
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

// UsableSize returns how many bytes of the block at p may be used: at least
// what was asked for. It is 0 for nil.
func (h *Heap) UsableSize(p unsafe.Pointer) int {
	if p == nil {
		return 0
	}
	b := h.blockAt("Heap.UsableSize", p)
	switch s := spanAt(uintptr(p)); {
	case s.isWatched(h.pages.ID, uintptr(p)):
		return len(b) // so that a write behind it is found
	case s.Kind == pages.BlockRun:
		return int(s.Size)
	}
	return h.goodSize(len(b))
}

// blockAt returns the live block that begins at p.
func (h *Heap) blockAt(call string, p unsafe.Pointer) []byte {
	addr := uintptr(p)
	s := spanAt(addr)
	switch {
	case s.isWatched(h.pages.ID, addr):
		if b := h.watch.Block(call, addr); b != nil {
			return b
		}
	case s != nil:
		size := s.Size
		if s.Kind == pages.BlockRun {
			size = uintptr(*statusAt(s.statusOf(s.index(addr))))
		}
		if s.isBlock(h.pages.ID, addr, size) || s.IsLarge(h.pages.ID, addr, size) {
			return unsafe.Slice((*byte)(p), size)
		}
	}
	h.misused(call, unsafe.Slice((*byte)(p), 1))
	return nil
}
