// Package alloc has the benchmarks of allocators.
//
// The peer is chosen at build time: one peer_*.go file is in the build, and the loops call its
// functions directly, inlined as in a user's program. A call through an interface's adapter, a
// type parameter or a function value adds 15 to 20% to a pair of malloc and free.
// native/native.c has the same loops in C.
//
//	go test ./bench/alloc -bench Pair                                   freehold's Heap
//	go test ./bench/alloc -bench Pair -tags peer,peer_goheap            the Go heap
//	go test ./bench/alloc -bench Memory -benchtime 1x                   a whole load
//
// Every peer defines these names, small enough to be inlined:
//
//	peer                         its name
//	block                        what alloc returns
//	alloc zeroed realloc free    as in C, with an error
//	touch first bytes            access to a block
//	pair                         a loop of alloc, touch and free
//
// and if it is an arena bump, bumpNew, reset and enter: a block, a zero object, the end of all of
// them, and a guard, under which others may reset.
package alloc

import "errors"

// An object is the value that typed calls hand out.
type object [64]byte

// bumpBytes is how many bytes a goroutine allocates between two resets.
const bumpBytes = 1 << 20

// several says that several goroutines use the allocator, for peers that have no lock.
var several bool

// errCannot marks a load that a peer has no function for.
var errCannot = errors.New("has no realloc")

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
