// Heap: the Allocator over C's malloc.
//
// The calls into C are in one file per malloc, each with the same functions:
//
//	libc.go       malloc, or what replaces it
//	jemalloc.go   jemalloc, -tags jemalloc
//	none.go       a build without cgo
//
// Arguments are checked here, so each method is at most one call into C.
//
//   - A build has one malloc. A jemalloc without a prefix replaces malloc once it is linked, so a
//     process with both would measure one of them twice.
//   - Addresses are passed to C as integers. cgo's check of a pointer argument costs a tenth of a
//     pair of Alloc and Free.
//   - The count of live blocks is striped. A single word would be shared by all processors.
//   - Free does not use sdallocx: that needs the size that chose the class, and Free has only the
//     length.

package cmalloc

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// maxBytes is above the size of any address space, and small enough that a size
// plus an alignment does not overflow: 128 TiB, or 2 GiB on 32 bits.
const maxBytes = math.MaxInt >> (strconv.IntSize / 64 * 16)

// smallBytes is the largest block that Resize keeps in place for any smaller size.
const smallBytes = 64

// Heap allocates from C's heap. It implements [freehold.Allocator] and is safe for concurrent use.
//
// All Heaps of a process share C's one heap; a Heap itself only counts its live blocks. There is no
// Close: C's heap does not end, and C cannot free the blocks of one Heap. Alloc and Free are one
// call into C each (BenchmarkPair), or none for size 0. Neither allocates on the Go heap.
//
// Free of anything but a whole live block of this Heap is not detected: it
// corrupts C's heap. New makes a Heap; the zero value works too, except that it
// panics in builds where New returns an error.
type Heap struct{ live tally }

// New returns a Heap, or an error that matches [errors.ErrUnsupported] and says
// why this build has none: see Without cgo.
func New() (*Heap, error) {
	if missing != nil {
		return nil, missing
	}
	return &Heap{}, nil
}

// Alloc implements [freehold.Allocator]. The error tells the request; C gives no reason.
func (h *Heap) Alloc(size, align int) ([]byte, error) {
	if !askable(size, align) {
		return odd("cmalloc.Heap.Alloc", size, align)
	}
	return h.block(alloc(uintptr(size), uintptr(align)), size, align)
}

// Zeroed implements [freehold.Allocator]. It is calloc, which does not clear memory
// that is fresh from the system. Blocks with alignments above 16 are always
// cleared, except by jemalloc.
func (h *Heap) Zeroed(size, align int) ([]byte, error) {
	if !askable(size, align) {
		return odd("cmalloc.Heap.Zeroed", size, align)
	}
	return h.block(zeroed(uintptr(size), uintptr(align)), size, align)
}

// Resize implements [freehold.Allocator]. jemalloc grows a block in place if the memory after it is
// free, and shrinks it in place. Another malloc leaves the block as it is, and Resize succeeds if
// size fits its usable size. Resize reports false if less than half of a block above 64 bytes would
// be used. It never copies, so it does not call realloc, which might. As a result,
// [freehold.Realloc] copies large blocks that realloc would remap.
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

// Free implements [freehold.Allocator]. b must be a live block of h, which is not checked.
func (h *Heap) Free(b []byte) {
	if len(b) == 0 {
		return
	}
	free(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	h.live.add(-1)
}

// Live returns the number of live blocks of h, without empty ones. Blocks that are live when h is
// no longer used are leaks. Each concurrent call may make the number off by one.
func (h *Heap) Live() int { return h.live.sum() }

// Trim gives free memory of all of C's heap back to the operating system: by
// malloc_trim in glibc, by a purge of all arenas in jemalloc, not at all elsewhere.
// It takes milliseconds or more.
func (h *Heap) Trim() { trim() }

// Implementation returns the name of the malloc in use and its version, or "" if it reports none:
//
//	"glibc", "2.36"
//	"jemalloc", "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"
//	"libc", ""                  another C library's own
//	"libmimalloc.so.2", ""      a library that replaces it
//	"", ""                      this build has none
func Implementation() (name, version string) { return implementation() }

// block makes a slice of C's result for size bytes at a multiple of align.
func (h *Heap) block(p unsafe.Pointer, size, align int) ([]byte, error) {
	if p == nil {
		return nil, outOfMemory(size, align)
	}
	h.live.add(1)
	return unsafe.Slice((*byte)(p), size), nil
}

// askable reports whether a request may go to C.
func askable(size, align int) bool {
	return uint(size-1) < maxBytes && align&(align-1) == 0 && uint(align-1) < uint(maxBytes-size)
}

// odd answers a request that must not go to C: it panics for wrong arguments, and handles size 0
// and sizes above maxBytes.
func odd(call string, size, align int) ([]byte, error) {
	arg.AtLeast(call, "size", size, 0)
	arg.Align(call, align)
	if size == 0 {
		return []byte{}, nil
	}
	return nil, outOfMemory(size, align)
}

func outOfMemory(size, align int) error {
	return fmt.Errorf("%w: malloc could not provide %s at a multiple of %d", freehold.ErrOutOfMemory, arg.Bytes(size), align)
}
