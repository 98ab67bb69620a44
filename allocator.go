// Allocator: the interface of everything that allocates.
//
// Realloc and ReallocZeroed work on any Allocator, as do the typed functions in typed.go.
// See doc.go for the glossary and the three rules.

package freehold

import (
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
)

// Allocator hands out blocks of memory that the garbage collector does not see.
//
// If memory runs out, calls return an error that matches [ErrOutOfMemory], and
// nothing has changed. Misuse panics with a message that begins with "freehold: "
// and names the mistake: a negative size, an alignment that is not a power of
// two or, where the allocator can tell, a block that it did not allocate or that
// was freed before.
//
// Each implementation says whether it is safe for concurrent use. [NewLocked]
// makes any of them safe.
type Allocator interface {
	// Alloc returns a block whose len and cap are size, at a multiple of align
	// (a power of two; 1 is enough for bytes). Its contents are undefined. Size 0
	// returns an empty, non-nil block.
	Alloc(size, align int) ([]byte, error)

	// Zeroed is like Alloc, and every byte is zero.
	Zeroed(size, align int) ([]byte, error)

	// Resize changes b's size without copying, in place or by remapping its
	// pages, and returns the resized block; b is then no longer valid. Bytes
	// beyond the old size are undefined. The alignment of b is kept. Resize
	// reports false if a copy is better or the only way (see [Realloc]), or if b
	// is empty and size is not 0: b is then unchanged, and the returned slice
	// has no meaning. Size 0 frees b. A negative size panics.
	Resize(b []byte, size int) ([]byte, bool)

	// Free frees b, which must be exactly a slice that Alloc, Zeroed or Resize
	// returned. It may be empty. Free of nil is a no-op.
	Free(b []byte)
}

// Owner is an [Allocator] that knows its own blocks. Every wrapper of this package
// has Owns. If the wrapped allocator is not an Owner, Owns is false for all
// blocks, and [NewFallback] does not accept the wrapper as its first.
type Owner interface {
	Allocator

	// Owns reports whether b's first byte is in memory of this allocator.
	// It is false for an empty slice.
	Owns(b []byte) bool
}

// ErrOutOfMemory is matched, by errors.Is, by every error for lack of memory: the
// operating system refused, a limit was reached, or the size exceeds the address
// space. Nothing has changed when it is returned.
var ErrOutOfMemory error

func init() { ErrOutOfMemory = pages.ErrOutOfMemory }

// Realloc returns a block of the given size with b's contents, up to the
// smaller of the two sizes. Bytes beyond are undefined. It resizes b if the
// allocator can, and copies otherwise. On success b is no longer valid. On an
// error b is unchanged and the caller still owns it. A nil or empty b makes it
// Alloc. Size 0 frees b and returns an empty block.
//
// align must be the alignment that b was allocated with. Realloc panics if it is not
// a power of two.
func Realloc(a Allocator, b []byte, size, align int) ([]byte, error) {
	arg.Align("Realloc", align)
	if len(b) == 0 {
		return a.Alloc(size, align)
	}
	if r, ok := a.Resize(b, size); ok {
		return r, nil
	}
	r, err := a.Alloc(size, align)
	return replace(a, b, r, err)
}

// ReallocZeroed is [Realloc], and the bytes beyond b's old size are zero. A nil or empty b
// makes it Zeroed. Where it resizes b, it clears the bytes that it adds, so they become
// resident.
func ReallocZeroed(a Allocator, b []byte, size, align int) ([]byte, error) {
	arg.Align("ReallocZeroed", align)
	if len(b) == 0 {
		return a.Zeroed(size, align)
	}
	if r, ok := a.Resize(b, size); ok {
		clear(r[min(len(b), size):])
		return r, nil
	}
	r, err := a.Zeroed(size, align)
	return replace(a, b, r, err)
}

// replace copies b to r and frees b, unless err says that there is no r.
func replace(a Allocator, b, r []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	copy(r, b)
	a.Free(b)
	return r, nil
}
