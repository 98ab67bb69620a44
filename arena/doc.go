// Package arena allocates many blocks fast and frees them all at once.
//
// An [Arena] takes chunks from any [freehold.Allocator] and cuts blocks off
// them, one after the other:
//
//	scratch := arena.New(heap, nil)
//	defer scratch.Close()
//
//	n, err := freehold.New[Node](scratch)    // a plain *Node
//	s, err := freehold.CloneString(scratch, name)
//	...
//	scratch.Reset() // all blocks end; the memory stays for the next ones
//
// It is for data that ends together: what one request, one batch, one parse or
// one index needs. Where blocks end one by one, a [freehold.Heap] uses memory
// again that an arena keeps.
//
//   - [Arena] is one owner's: the fastest, and not safe for concurrent use.
//     [NewFixed] makes one in a []byte of the caller's, without a parent.
//   - [Shared] is for any goroutine, with a part for each processor, and can be
//     reset while others allocate and read.
//   - [Registry] turns an arena of either kind into a number that can be stored
//     off-heap, and back.
//   - [Recycler] keeps arenas that are not needed at the moment, with their
//     memory, and gives that back over time.
//
// A chunk is the unit that an arena takes from its parent, the allocator below.
// A chunk is spare while the arena keeps it and no block lies in it.
//
// A block, and all that was made of it, ends with the first of: Free of it,
// [Arena.Rewind] to a [Mark] that is older, [Arena.Reset], [Arena.Close], and
// the Close of the parent. Builds with the tag freehold_debug fill memory with
// 0xDB when its block ends, and panic at the next block there if something has
// been written to it since.
package arena
