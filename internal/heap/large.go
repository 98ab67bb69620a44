// Large blocks: runs of pages, one block each.

package heap

import (
	"fmt"
	"math"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
)

const maxSize = math.MaxInt/2 - pages.SegmentBytes // exceeds any address space

// allocLarge is tryAlloc of a large block. It panics for bad arguments.
func (h *Heap) allocLarge(size, align int, zero bool) (b []byte, err error) {
	call := allocCall(zero)
	arg.AtLeast(call, "size", size, 0)
	arg.Align(call, align)
	h.mustBeOpen(call)
	if size == 0 {
		return []byte{}, nil
	}
	if size > maxSize || align > maxSize || uintptr(size)+uintptr(align) > maxSize {
		return nil, fmt.Errorf("%w: %s at a multiple of %d are more than an address space has", pages.ErrOutOfMemory, arg.Bytes(size), align)
	}
	err = h.withReclaim(pages.RoundUp(uintptr(size), pages.PageBytes)/pages.PageBytes, false, func() (err error) {
		b, err = h.newLarge(size, align, zero)
		return err
	})
	return b, err
}

// newLarge is allocLarge without reclaim and checks.
func (h *Heap) newLarge(size, align int, zero bool) ([]byte, error) {
	s, err := h.pages.AllocBlock(uintptr(size), uintptr(align), zero)
	if err != nil {
		return nil, err
	}
	return block(s.Base, size, false), nil
}

// freeLarge is Free for blocks in no span of blocks. It panics for misuse. Empty slices
// of foreign memory are a no-op.
func (h *Heap) freeLarge(b []byte) {
	addr := addrOf(b)
	if cap(b) == 0 && pages.Addresses.RegionOf(addr) == nil {
		return
	}
	if len(b) > 0 && h.keepRun(b) {
		return
	}
	if len(b) == 0 || !h.pages.FreeBlock(addr, uintptr(len(b))) {
		h.misused("Heap.Free", b)
	}
}

// resizeLarge is Resize, in the name of call, of b, which is a large block unless
// another goroutine has just freed or resized it.
func (h *Heap) resizeLarge(call string, b []byte, size int) ([]byte, bool) {
	// A block that shrinks to a small size is copied to a span, which frees its pages.
	// But a small size may have got pages of its own, near the limit: see mayTakePage.
	// Such a block is resized within them.
	old := uintptr(len(b))
	if size > maxSize || size <= maxSmall && !h.pages.WholePages && (old > maxSmall || uintptr(size) > pages.RoundUp(old, pages.PageBytes)) {
		return nil, false
	}
	s, live := h.pages.ResizeBlock(addrOf(b), old, uintptr(size))
	if !live {
		h.misused(call, b)
	}
	if s == nil {
		return nil, false
	}
	pages.NoteGrowth()
	return block(s.Base, size, false), true
}
