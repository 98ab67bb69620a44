// Wrappers: the optional methods of an allocator, through wrappers.
//
// Owns and GoodSize are optional for an allocator. A wrapper always has them. If next lacks them,
// GoodSize returns its argument and Owns is false. A Fallback with such a wrapper as first would
// free blocks to the wrong allocator, so NewFallback rejects it.

package freehold

import (
	"reflect"

	"github.com/freehold-go/freehold/internal/owners"
)

func init() { owners.AddTraits(traitsOf) }

// traitsOf returns the traits of a heap and of wrappers.
func traitsOf(a any) (t owners.Traits, ok bool) {
	switch a := a.(type) {
	case *Heap:
		return owners.Traits{Closed: a.h.ClosedFlag(), Collect: a.h.Collect}, true
	case *fallback:
		t = owners.TraitsOf(a.first)
		rest := owners.TraitsOf(a.rest)
		t.Solo, t.Ends = t.Solo || rest.Solo, t.Ends || rest.Ends
		first := t.Collect
		t.Collect = func(free func() bool) bool { return first(func() bool { return rest.Collect(free) }) }
		return t, true
	case *locked:
		t = owners.TraitsOf(a.next)
		t.Solo = false
		return t, true
	case *Scope:
		t = owners.TraitsOf(a.next)
		t.Closed, t.Ends = &a.closed, true
		return t, true
	case interface{ ownsBy() Allocator }:
		return owners.TraitsOf(a.ownsBy()), true
	}
	return t, false
}

// GoodSize returns the size in bytes, at least size, of the block that a would use for size bytes:
// allocating all of it takes no more memory. It returns size if a has no method GoodSize, or if a
// has no block of size bytes, for which that method returns 0. It returns 0 for a size of 0 or
// less. It is for containers and arenas over any allocator.
func GoodSize(a Allocator, size int) int { return max(size, goodSize(a, size), 0) }

// goodSize returns a's GoodSize of size, or size if a has no such method. 0 means that a has no
// block of size bytes.
func goodSize(a Allocator, size int) int {
	if g, ok := a.(interface{ GoodSize(size int) int }); ok && size > 0 {
		return g.GoodSize(size)
	}
	return max(size, 0)
}

// owns reports whether b begins in memory of a. It is false if a is not an Owner.
func owns(a Allocator, b []byte) bool {
	o, ok := a.(Owner)
	return ok && o.Owns(b)
}

// shared returns an allocator that both a and b are or wrap, so that both own its blocks, or nil.
func shared(a, b Allocator) Allocator {
	of := sources(a)
	for _, s := range sources(b) {
		for _, t := range of {
			if reflect.ValueOf(s).Comparable() && s == t {
				return s
			}
		}
	}
	return nil
}

// sources returns the allocators inside a's wrappers.
func sources(a Allocator) []Allocator {
	switch w := a.(type) {
	case *fallback:
		return append(sources(w.first), sources(w.rest)...)
	case interface{ ownsBy() Allocator }:
		return sources(w.ownsBy())
	}
	return []Allocator{a}
}

// notOwnerIn returns the allocator inside a's wrappers that is not an Owner, so that Owns of a is
// always false. It returns nil if there is none.
func notOwnerIn(a Allocator) Allocator {
	if w, ok := a.(interface{ ownsBy() Allocator }); ok {
		return notOwnerIn(w.ownsBy())
	}
	if _, ok := a.(Owner); !ok {
		return a
	}
	return nil
}
