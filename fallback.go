// Fallback: a second allocator, used when the first is out of memory.

package freehold

import "github.com/freehold-go/freehold/internal/arg"

// NewFallback returns an allocator that allocates from first, and from rest if first returns an
// error; the error of rest is returned. Free and Resize use first's Owns to find the block's
// allocator. [Realloc] moves a block to the other allocator if only that one has room.
//
//	// The first 64 MiB come from a separate heap, the rest from the default one.
//	a := freehold.NewFallback(freehold.NewLimit(own, 64<<20), freehold.Default())
//
// Owns reports whether first or rest owns a block. It is false for blocks of rest if rest is not an
// [Owner].
//
// NewFallback panics if either is nil, or if first is a wrapper of this package around an allocator
// that is not an Owner, since first then does not know its blocks. first must not own the blocks of
// rest, or they would be freed to first. It owns them if both are the same heap or wrappers of it;
// NewFallback then panics. An arena or a pool on a heap owns only its own blocks, so that heap may
// be rest.
//
// Close both after the containers over it. A container notices that first is closed, as if it were
// the parent. It does not notice that rest is closed: a call that reads memory of rest then ends the
// process by a fault.
//
// It is safe for concurrent use if both allocators are, and needs no Close. It adds an indirect
// call to each call, and one Owns to each Free and Resize (BenchmarkWrappers).
func NewFallback(first Owner, rest Allocator) Owner {
	arg.NotNil("NewFallback", "first", first)
	arg.NotNil("NewFallback", "rest", rest)
	if a := notOwnerIn(first); a != nil {
		arg.Panicf("NewFallback", "first, a %T, cannot tell its blocks: it is around a %T, which is no Owner", first, a)
	}
	if a := shared(first, rest); a != nil {
		arg.Panicf("NewFallback", "first would own the blocks of rest: both allocate from one %T", a)
	}
	return &fallback{first: first, rest: rest}
}

// A fallback allocates from rest what first refuses.
type fallback struct {
	first Owner
	rest  Allocator
}

func (f *fallback) Alloc(size, align int) ([]byte, error) {
	if b, err := f.first.Alloc(size, align); err == nil {
		return b, nil
	}
	return f.rest.Alloc(size, align)
}

func (f *fallback) Zeroed(size, align int) ([]byte, error) {
	if b, err := f.first.Zeroed(size, align); err == nil {
		return b, nil
	}
	return f.rest.Zeroed(size, align)
}

func (f *fallback) Resize(b []byte, size int) ([]byte, bool) { return f.home(b).Resize(b, size) }

func (f *fallback) Free(b []byte) { f.home(b).Free(b) }

func (f *fallback) Owns(b []byte) bool { return f.first.Owns(b) || owns(f.rest, b) }

// GoodSize returns first's GoodSize of size, or size if first has none. If first has no
// block that large, it returns rest's.
func (f *fallback) GoodSize(size int) int {
	if n := goodSize(f.first, size); n > 0 {
		return n
	}
	return goodSize(f.rest, size)
}

// home returns the allocator that b came from.
func (f *fallback) home(b []byte) Allocator {
	if f.first.Owns(b) {
		return f.first
	}
	return f.rest
}

func (f *fallback) ownsBy() Allocator { return f.rest } // NewFallback has checked first
