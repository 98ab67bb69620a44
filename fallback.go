// Fallback: a second allocator for when the first has run out.

package freehold

import "github.com/freehold-go/freehold/internal/arg"

// Fallback takes each block from its first allocator and, when that returns an
// error, from the rest; the error, if any, is then the rest's. Free and Resize go
// to the one that the block came from, by first's Owns, and [Realloc] moves a
// block across when only the other has room.
//
//	// The first 64 MiB from a heap of their own, the others from the common one.
//	a := freehold.NewFallback(freehold.NewLimit(own, 64<<20), freehold.Default())
//
// The two must not hand out the same memory: over one and the same heap, blocks
// of rest would seem to be first's. It is safe for concurrent use if both are.
//
// It adds a call to each call, 3 ns, and one Owns to each Free and Resize.
type Fallback struct {
	_     noCopy
	first Owner
	rest  Allocator
}

// NewFallback returns a Fallback of first and rest. Nothing needs to be closed. It
// panics if either is nil, or if first cannot tell its own blocks: a wrapper of
// this package around an allocator that is no [Owner].
func NewFallback(first Owner, rest Allocator) *Fallback {
	arg.NotNil("NewFallback", "first", first)
	arg.NotNil("NewFallback", "rest", rest)
	if a := blindIn(first); a != nil {
		arg.Panicf("NewFallback", "first, a %T, cannot tell its blocks: it is around a %T, which is no Owner", first, a)
	}
	return &Fallback{first: first, rest: rest}
}

// Alloc implements [Allocator].
func (f *Fallback) Alloc(size, align int) ([]byte, error) {
	if b, err := f.first.Alloc(size, align); err == nil {
		return b, nil
	}
	return f.rest.Alloc(size, align)
}

// Zeroed implements [Allocator].
func (f *Fallback) Zeroed(size, align int) ([]byte, error) {
	if b, err := f.first.Zeroed(size, align); err == nil {
		return b, nil
	}
	return f.rest.Zeroed(size, align)
}

// Resize implements [Allocator].
func (f *Fallback) Resize(b []byte, size int) ([]byte, bool) { return f.home(b).Resize(b, size) }

// Free implements [Allocator].
func (f *Fallback) Free(b []byte) { f.home(b).Free(b) }

// Owns implements [Owner]: it owns what either owns. It is false for the blocks of
// a rest that is no Owner.
func (f *Fallback) Owns(b []byte) bool { return f.first.Owns(b) || owns(f.rest, b) }

// GoodSize returns first's GoodSize of size, or size if first has none.
func (f *Fallback) GoodSize(size int) int { return GoodSize(f.first, size) }

// home returns the allocator that b came from.
func (f *Fallback) home(b []byte) Allocator {
	if f.first.Owns(b) {
		return f.first
	}
	return f.rest
}

func (f *Fallback) ownsBy() Allocator { return f.rest } // first can tell
