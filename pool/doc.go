// Package pool allocates blocks of one size: objects, nodes and buffers that are allocated and
// freed all the time.
//
//	nodes := pool.New[Node](heap, nil)
//	defer nodes.Close()
//
//	n, err := nodes.Get() // a zero Node
//	if err != nil {
//		return err
//	}
//	defer nodes.Put(n)
//
// [Pool] is for values of a type. [Blocks] is for plain bytes; it is a [freehold.Allocator] and can
// be the first of a [freehold.NewFallback]. Any goroutine may use either. Memory comes in chunks
// from a parent, which is any allocator that supports alignments of 64 KiB and more.
//
//   - A [Cache] serves one goroutine, with no synchronization in Get and Put.
//   - A [Handle] refers to a value and detects that it is gone. It may be stored
//     off-heap.
//   - Retire puts a value back once every goroutine that may still be reading
//     it has left its [epoch.Guard].
//
// Retire is epoch-based reclamation. The pool's metadata is outside of its blocks, so a write past
// the end of a block does not corrupt it.
//
// # Misuse
//
// A Put of anything but a live block panics and says why: the block was freed or retired before,
// the address is inside a block, or the memory is not of this pool.
//
// Two goroutines that free one block concurrently may both return. The block still has one owner at
// a time: a Get that finds it a second time panics, and Trim drops the second reference and keeps
// the chunk of a live block. Two races are not detected: two Gets find the block at the same
// moment, or the second Free checks the block before the first has freed it, and frees it after it
// was handed out again.
//
// The pool does not detect reads or writes of a block after its Put, nor a second Put of a block
// that has been handed out again since. PutHandle detects the latter. With FREEHOLD_DEBUG=poison
// the pool panics for a write to a free block when it hands the block out again, or in Trim, Reset
// or Close. It panics for a write to the padding behind a block when the block is freed.
package pool
