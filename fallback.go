// Fallback: a second allocator, used when the first is out of memory.

package freehold

import "github.com/freehold-go/freehold/internal/arg"

// Fallback allocates from first. If first returns an error, it allocates from rest and returns the
// error of rest. Free and Resize use first's Owns to find the block's allocator. [Realloc] moves a
// block to the other allocator if only that one has room.
//
//	// The first 64 MiB come from a separate heap, the rest from the default one.
//	a := freehold.NewFallback(freehold.NewLimit(own, 64<<20), freehold.Default())
//
// first must not own the blocks of rest, or they would be freed to first. It owns them if both are
// the same heap, wrappers of it or its caches; [NewFallback] then panics. An arena or a pool on a
// heap owns only its own blocks, so that heap may be rest.
//
// A Fallback is safe for concurrent use if both allocators are.
//
// It adds an indirect call to each call, and one Owns to each Free and Resize
// (BenchmarkWrappers).
//
// Make one with [NewFallback]. Calls of a zero Fallback panic.
type Fallback struct {
	_     noCopy
	first Owner
	rest  Allocator
}

// NewFallback returns a Fallback of first and rest. It panics if either is nil, or if both allocate
// from one allocator. It also panics if first is a wrapper of this package around an allocator that
// is not an [Owner], since first then does not know its blocks. A Fallback needs no Close.
func NewFallback(first Owner, rest Allocator) *Fallback {
	arg.NotNil("NewFallback", "first", first)
	arg.NotNil("NewFallback", "rest", rest)
	if a := notOwnerIn(first); a != nil {
		arg.Panicf("NewFallback", "first, a %T, cannot tell its blocks: it is around a %T, which is no Owner", first, a)
	}
	if a := shared(first, rest); a != nil {
		arg.Panicf("NewFallback", "first would own the blocks of rest: both allocate from one %T", a)
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

// Owns implements [Owner]. It reports whether first or rest owns b. It is false
// for blocks of rest if rest is not an Owner.
func (f *Fallback) Owns(b []byte) bool { return f.first.Owns(b) || owns(f.rest, b) }

// GoodSize returns first's GoodSize of size, or size if first has none. If first has no
// block that large, it returns rest's.
func (f *Fallback) GoodSize(size int) int {
	if n := goodSize(f.first, size); n > 0 {
		return n
	}
	return goodSize(f.rest, size)
}

// home returns the allocator that b came from.
func (f *Fallback) home(b []byte) Allocator {
	if f.first.Owns(b) {
		return f.first
	}
	return f.rest
}

func (f *Fallback) ownsBy() Allocator { return f.rest } // NewFallback has checked first
