// Package arena allocates many blocks fast and frees them all at once.
//
// An [Arena] is a bump allocator over chunks from any [freehold.Allocator]:
//
//	scratch := arena.New(heap, nil)
//	defer scratch.Close()
//
//	n, err := freehold.New[Node](scratch)    // a plain *Node
//	s, err := freehold.CloneString(scratch, name)
//	...
//	scratch.Reset() // ends all blocks, keeps the memory for the next ones
//
// Use it for data with one lifetime: a request, a batch, a parse, an index. Where
// blocks are freed one by one, use a [freehold.Heap], which reuses their memory.
//
//   - [Arena] has one owner. It is the fastest, and not safe for concurrent use.
//     [NewFixed] makes one in the caller's []byte, without a parent.
//   - [Shared] serves any goroutine from a chunk per processor. It can be reset while other
//     goroutines allocate and read.
//   - [Recycler] is a pool of idle arenas, which keep their memory for a while.
//
// A chunk is the unit of memory that an arena takes from its parent, the
// allocator below. A spare chunk is one that the arena keeps without blocks.
//
// A block, and every value in it, ends with the first of: its Free, [Arena.Rewind] to an older
// [Mark], [Arena.Reset], [Arena.Close], and the Close of the parent. With FREEHOLD_DEBUG=poison an
// arena fills a block's memory with 0xDB when the block ends. It panics at the next allocation
// there if the memory was written to meanwhile.
package arena
