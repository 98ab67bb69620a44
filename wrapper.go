// Wrappers: what they ask of next that not every allocator can answer.
//
// Owns and GoodSize are optional, and a wrapper has them whether next does or
// not. A good size is then the size itself, and no block is owned. NewFallback,
// which would send blocks to the wrong place, refuses a wrapper that cannot tell.

package freehold

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

// owns reports whether b begins in memory of a; false if a is no Owner.
func owns(a Allocator, b []byte) bool {
	o, ok := a.(Owner)
	return ok && o.Owns(b)
}

// blindIn returns what keeps a from telling its own blocks: the allocator at the
// bottom of its wrappers that is no Owner. It is nil if there is none.
func blindIn(a Allocator) Allocator {
	if w, ok := a.(interface{ ownsBy() Allocator }); ok {
		return blindIn(w.ownsBy())
	}
	if _, ok := a.(Owner); !ok {
		return a
	}
	return nil
}
