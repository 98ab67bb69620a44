// Fallback: a second allocator for when the first has run out.

package freehold

// Fallback returns an allocator that takes each block from first and, when first
// returns an error, from rest; the error, if any, is then rest's. Free and Resize
// go to the one that the block came from, by first's Owns, and [Realloc] moves a
// block across when only the other has room.
//
//	// The first 64 MiB from a heap of their own, the others from the common one.
//	a := freehold.Fallback(freehold.NewLimit(own, 64<<20), freehold.Default())
//
// The two must not hand out the same memory: over one and the same heap, blocks
// of rest would seem to be first's. If rest is an [Owner] then so is the result,
// and owns what either owns. It is safe for concurrent use if both are. It
// panics if first wraps an allocator that is no Owner.
//
// It adds a call to each call, 3 ns, and one Owns to each Free and Resize.
func Fallback(first Owner, rest Allocator) Allocator {
	first.Owns(nil) // a wrapper that cannot tell says so now, not at the first Free
	f := fallback{first: first, rest: rest}
	if o, ok := rest.(Owner); ok {
		return fallbackOwner{fallback: f, second: o}
	}
	return f
}

type fallback struct {
	first Owner
	rest  Allocator
}

// fallbackOwner is a fallback whose rest is an Owner too.
type fallbackOwner struct {
	fallback
	second Owner
}

// Owns implements [Owner].
func (f fallbackOwner) Owns(b []byte) bool { return f.first.Owns(b) || f.second.Owns(b) }

// Alloc implements [Allocator].
func (f fallback) Alloc(size, align int) ([]byte, error) {
	if b, err := f.first.Alloc(size, align); err == nil {
		return b, nil
	}
	return f.rest.Alloc(size, align)
}

// Zeroed implements [Allocator].
func (f fallback) Zeroed(size, align int) ([]byte, error) {
	if b, err := f.first.Zeroed(size, align); err == nil {
		return b, nil
	}
	return f.rest.Zeroed(size, align)
}

// Resize implements [Allocator].
func (f fallback) Resize(b []byte, size int) ([]byte, bool) { return f.home(b).Resize(b, size) }

// Free implements [Allocator].
func (f fallback) Free(b []byte) { f.home(b).Free(b) }

// GoodSize returns first's GoodSize of size, or size if first has none.
func (f fallback) GoodSize(size int) int { return GoodSize(f.first, size) }

// home returns the allocator that b came from.
func (f fallback) home(b []byte) Allocator {
	if f.first.Owns(b) {
		return f.first
	}
	return f.rest
}
