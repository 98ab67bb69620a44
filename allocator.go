// Allocator: the interface that every part of freehold hands memory out by.
//
// The functions that work on any Allocator stand beside it: Realloc here, the
// typed ones in typed.go. See doc.go for the glossary and the three rules.

package freehold

import (
	"github.com/freehold-go/freehold/internal/heap"
)

// Allocator hands out blocks of memory that the garbage collector does not see.
//
// Running out is an error that matches [ErrOutOfMemory], and then nothing has
// changed. A caller's mistake is a panic whose message begins with "freehold: "
// and says what was wrong: a negative size, an alignment that is no power of
// two, and, where the allocator can tell, a block that it did not hand out or
// has already taken back.
//
// Whether an Allocator may be used by several goroutines at once is each
// implementation's to say; [NewLocked] makes any of them safe.
type Allocator interface {
	// Alloc returns a block whose len and cap are size, at a multiple of align
	// (a power of two). Its contents are undefined. Size 0 gives an empty,
	// non-nil block.
	Alloc(size, align int) ([]byte, error)

	// Zeroed is Alloc with every byte zero.
	Zeroed(size, align int) ([]byte, error)

	// Resize changes b's size without copying, in place or by remapping its
	// pages, and returns the block under its new size; b is then no longer
	// valid. Bytes beyond the old size are undefined, and the alignment that b
	// was allocated with is kept. It reports false, leaves b alone and returns
	// nothing of meaning when a copy is the better way or the only one (see
	// [Realloc]), and when b is empty and size is not. Size 0 frees b. A
	// negative size is a panic.
	Resize(b []byte, size int) ([]byte, bool)

	// Free takes back exactly a slice that Alloc, Zeroed or Resize returned,
	// an empty one too. Nil is accepted and nothing happens.
	Free(b []byte)
}

// Owner is an [Allocator] that knows its own blocks. The wrappers of this package
// have Owns whatever they are around. Over an allocator that is no Owner it is
// false for every block; [NewFallback] does not accept these as its first.
type Owner interface {
	Allocator

	// Owns reports whether b's first byte lies in memory of this allocator.
	// It is false for an empty slice.
	Owns(b []byte) bool
}

// ErrOutOfMemory is matched, by errors.Is, by every error that says there is no
// memory: the operating system refused, a limit was reached, or the size is
// larger than an address can be. Nothing has changed when it is returned.
var ErrOutOfMemory error = heap.ErrOutOfMemory

// Realloc returns a block of the given size with b's contents, up to the
// smaller of the two sizes; what lies beyond is undefined. It resizes in place
// where the allocator can and copies otherwise. On success b is no longer
// valid; on an error b is untouched and still the caller's. A nil or empty b
// makes it Alloc; size 0 frees b and returns an empty block.
//
// align must be the alignment that b was allocated with.
func Realloc(a Allocator, b []byte, size, align int) ([]byte, error) {
	if len(b) == 0 {
		return a.Alloc(size, align)
	}
	if r, ok := a.Resize(b, size); ok {
		return r, nil
	}
	r, err := a.Alloc(size, align)
	if err != nil {
		return nil, err
	}
	copy(r, b)
	a.Free(b)
	return r, nil
}
