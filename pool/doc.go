// Package pool hands out blocks of one size: objects, nodes, buffers that are
// taken and put back all the time.
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
// [Pool] is for values of a type, [Blocks] for plain bytes and, being a
// [freehold.Allocator], for the place of first in [freehold.NewFallback]. Both may
// be used by any goroutine. Their memory comes in chunks from a parent, which
// is any allocator that gives such alignments.
//
//   - A goroutine that gets and puts a lot has a [Cache] of its own.
//   - A [Handle] refers to a value and knows when it is gone. It may be stored
//     off-heap.
//   - Retire puts a value back once every goroutine that may still be reading
//     it has left its [Guard].
//
// What is known of a block stands outside the block, so a write beyond its end
// does not harm the pool. A Put of what is not a live block panics and says
// why: put back before, retired before, in the middle of a block, not of this
// pool. Two goroutines that put one block back at the very same moment may both
// return; a later Get finds that and panics, unless two of them find the block
// at the same moment too.
//
// What is not detected: reading or writing a block after its Put, and a second
// Put of a block that has been handed out again in the meantime; PutHandle
// detects that.
package pool
