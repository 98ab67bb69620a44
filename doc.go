// Package freehold is memory that you own: blocks, values, slices and strings
// outside the Go heap, which the garbage collector neither scans nor frees nor
// counts. It is pure Go on the operating system's virtual memory.
//
//	heap := freehold.NewHeap(nil)
//	defer heap.Close()
//
//	xs, err := freehold.MakeSlice[uint64](heap, 1<<20) // an ordinary []uint64
//	if err != nil {
//		return err
//	}
//	defer freehold.FreeSlice(heap, xs)
//
// It is for large tables, caches and indexes that live long, for buffers that
// are made and dropped faster than the collector should see, and for memory
// that must stay under a limit. A small program without such data is better off
// with the Go heap, which cannot be used after free and never leaks.
//
// # Three rules
//
//  1. Off-heap memory holds no Go pointers. The collector does not look there,
//     so what such a pointer refers to would be freed under it. [New],
//     [MakeSlice], [Append] and [Clone] refuse a type that holds any; [Ptr],
//     [Slice] and [String] are the references that may be stored instead.
//  2. Who allocates frees: with the same allocator, exactly once, and exactly
//     the slice, pointer or string that was handed out, not a part of it.
//  3. Nothing is used after its Free, nor after the Close of the allocator
//     that it came from. A Go variable may still hold the address.
//
// The compiler checks none of these, nor are all breaches found at run time:
// see Errors and panics.
//
// # Words
//
//   - A block is what [Allocator.Alloc] returns: a []byte with len equal to
//     cap, so that append can never run into the neighbour.
//   - An allocator hands out blocks and takes them back. A wrapper is an
//     allocator that gets its blocks from another one, called next.
//   - Off-heap is memory that the collector does not manage; the Go heap is
//     the memory that it does.
//   - A page is the unit of memory of the operating system; to reserve is to
//     take addresses, to commit is to put memory behind them, to decommit is to
//     give that memory back, and to release is to give up the addresses.
//
// # Lifetimes
//
// A block is valid from the call that returned it until the first of
//
//   - Free of it, directly or by [Free], [FreeSlice] or [FreeString],
//   - a Resize, [Realloc], [Append] or [Grow] of it that succeeds: the result takes its
//     place, and may or may not be at the same address,
//   - Close of the heap that it came from, or Reset or Close of the arena.
//
// A call that fails ends nothing: the block is as it was and still the caller's.
// The *T, []T and string that the typed functions return are views of one block
// and live as long as it does, and so is what Get of a [Ptr], [Slice] or
// [String] returns. Blocks have no owner that is known to the collector: one
// that nothing refers to any more is a leak.
//
// # Which allocator
//
//   - [Heap], for all but special cases: blocks of any size and alignment,
//     freed in any order, by any goroutine. [Default] is one for the whole
//     process; a library should take an [Allocator] from its caller.
//     [Heap.NewCache] is a part of it for a goroutine that allocates and frees much.
//   - [Pages], for few and large blocks: whole pages, which mostly grow without
//     a copy and go back to the operating system at Free.
//   - Package arena, for blocks that end together: they cost an addition each,
//     and nothing to free.
//   - Package pool, for many blocks of one size: nodes, objects, buffers.
//   - Package cmalloc, for a heap that is shared with C code: malloc or jemalloc,
//     through cgo.
//
// Wrappers add one thing each and go around any allocator, in any order;
// composition reads outside in:
//
//   - [NewLimit]: no more than so many bytes at once.
//   - [NewCounter]: how many bytes and blocks are live.
//   - [NewFallback]: a second allocator for when the first has run out.
//   - [NewLocked]: a mutex, for an allocator that is not safe for concurrent use.
//
// # Errors and panics
//
// Running out is an error that matches [ErrOutOfMemory]: the operating system
// refused, a limit was reached, or a size overflowed. Nothing has changed then.
//
// A caller's mistake is a panic whose message begins with "freehold: ": a
// negative size, an alignment that is no power of two, a type with Go pointers,
// and, where the allocator can tell, a block that it did not hand out or that
// was freed before. Use after Free is not detected: it reads or writes what is
// there by then. Package alloctest finds leaks and misuse in tests, and in
// builds with -race the memory is such that the race detector sees it.
package freehold
