// Wrappers: what they ask of next that not every allocator can answer.
//
// Owns and GoodSize are optional, and a wrapper has them whether next does or
// not. For a size there is a harmless answer, for ownership there is none.

package freehold

import "fmt"

// GoodSize returns the size in bytes, at least the given one, of the block that a
// would use for size bytes: asking for it costs no more memory. It is size itself
// where a has no method GoodSize to tell. It is for containers and arenas over
// any allocator.
func GoodSize(a Allocator, size int) int {
	if g, ok := a.(interface{ GoodSize(size int) int }); ok {
		return max(size, g.GoodSize(size))
	}
	return size
}

// mustOwn returns next as an Owner, and panics if it is none: to say that next
// does not own a block would send the block to the wrong place.
func mustOwn(wrapper string, next Allocator) Owner {
	o, ok := next.(Owner)
	if !ok {
		panic(fmt.Sprintf("freehold: Owns of a %s around a %T, which is no Owner", wrapper, next))
	}
	return o
}
