// Heap: the Allocator, but for the calls into C.
//
// Those are in one file per malloc, which all have the same few functions:
//
//	libc.go       malloc, or what stands in for it
//	jemalloc.go   jemalloc, -tags jemalloc
//	none.go       a build without cgo
//
// Arguments are checked here, so that each method is one call into C at most.

package cmalloc

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// maxBytes is more than an address space has, and not so much that a size and
// an alignment overflow: 128 TiB, or 2 GiB on 32 bits.
const maxBytes = math.MaxInt >> (strconv.IntSize / 64 * 16)

// smallBytes is up to where it is no waste to leave a block in place.
const smallBytes = 64

// Heap hands out blocks of C's heap. It implements [freehold.Allocator], for any
// goroutine.
//
// All Heaps of a process share C's one heap; what each has of its own is the
// count of its live blocks. So there is no Close: C's heap does not end, and it
// cannot free the blocks of one Heap. Alloc and Free cost a call into C, 30 ns, and what
// malloc takes. Neither allocates on the Go heap, and size 0 calls nothing.
//
// Free of anything but a live block of this Heap, whole, is not detected. It may
// end the process at once or break it much later.
type Heap struct{ live tally }

// New returns a Heap, or an error that matches [errors.ErrUnsupported] and says
// why this build has none: see Without cgo.
func New() (*Heap, error) {
	if missing != nil {
		return nil, missing
	}
	return &Heap{}, nil
}

// Alloc implements [freehold.Allocator]. The error says what was asked for: C
// tells no reason.
func (h *Heap) Alloc(size, align int) ([]byte, error) {
	if !askable(size, align) {
		return odd("cmalloc.Heap.Alloc", size, align)
	}
	return h.block(alloc(uintptr(size), uintptr(align)), size, align)
}

// Zeroed implements [freehold.Allocator]. It is calloc, which does not clear
// memory that comes fresh from the system; alignments above 16 are cleared here
// after all, but for jemalloc's.
func (h *Heap) Zeroed(size, align int) ([]byte, error) {
	if !askable(size, align) {
		return odd("cmalloc.Heap.Zeroed", size, align)
	}
	return h.block(zeroed(uintptr(size), uintptr(align)), size, align)
}

// Resize implements [freehold.Allocator]. jemalloc grows and shrinks a block
// where it is, if what lies behind it is free; another malloc leaves it as it is,
// and Resize succeeds if size fits there. It reports false for a block of more
// than 64 bytes of which less than half would be used. It never copies, so the C
// library's realloc, which might, is not called; large blocks that realloc would
// remap are copied by [freehold.Realloc].
func (h *Heap) Resize(b []byte, size int) ([]byte, bool) {
	arg.AtLeast("cmalloc.Heap.Resize", "size", size, 0)
	switch {
	case size == 0:
		h.Free(b)
		return []byte{}, true
	case len(b) == 0 || size >= maxBytes:
		return nil, false
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	room := resize(uintptr(p), uintptr(size))
	if uintptr(size) > room || room > smallBytes && uintptr(size) < room/2 {
		return nil, false
	}
	return unsafe.Slice((*byte)(p), size), true
}

// Free implements [freehold.Allocator]. b must be a live block of h: that is not
// checked.
func (h *Heap) Free(b []byte) {
	if len(b) == 0 {
		return
	}
	free(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	h.live.add(-1)
}

// Live returns how many blocks of h are live; empty ones do not count. Those at
// the end of a program are leaks, which C cannot find. With calls in progress it
// may be off by as many.
func (h *Heap) Live() int { return h.live.sum() }

// Trim gives free memory back to the operating system, now, as far as malloc has
// a way to: malloc_trim in glibc, a purge of all arenas in jemalloc, nothing
// elsewhere. It is for all of C's heap, and takes milliseconds or more.
func (h *Heap) Trim() { trim() }

// Implementation returns the name of the malloc in use and its version, "" where
// it tells none:
//
//	"glibc", "2.36"
//	"jemalloc", "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"
//	"libc", ""                  another C library's own
//	"libmimalloc.so.2", ""      a library that stands in for it
//	"", ""                      this build has none
func Implementation() (name, version string) { return implementation() }

// block makes a slice of what C returned for size bytes at a multiple of align.
func (h *Heap) block(p unsafe.Pointer, size, align int) ([]byte, error) {
	if p == nil {
		return nil, outOfMemory(size, align)
	}
	h.live.add(1)
	return unsafe.Slice((*byte)(p), size), nil
}

// askable reports whether C may be asked for size bytes at a multiple of align.
func askable(size, align int) bool {
	return uint(size-1) < maxBytes && align&(align-1) == 0 && uint(align-1) < uint(maxBytes-size)
}

// odd is where arguments end that C is not asked with: mistakes, nothing, and
// more than there can be.
func odd(call string, size, align int) ([]byte, error) {
	arg.AtLeast(call, "size", size, 0)
	arg.Align(call, align)
	if size == 0 {
		return []byte{}, nil
	}
	return nil, outOfMemory(size, align)
}

func outOfMemory(size, align int) error {
	return fmt.Errorf("%w: malloc has no %d bytes at a multiple of %d", freehold.ErrOutOfMemory, size, align)
}
