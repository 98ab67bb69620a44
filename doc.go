// Package freehold allocates off-heap memory: blocks, values, slices and strings
// that the garbage collector neither scans nor frees nor counts. You free them. It
// is pure Go on the operating system's virtual memory.
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
// Use it for large, long-lived tables, caches and indexes, for buffers that are
// allocated and dropped too fast for the collector, and for memory that must stay
// under a limit. Small programs without such data should use the Go heap, which
// has no use after free and no leaks.
//
// # Three rules
//
//  1. Off-heap memory holds no Go pointers. The collector does not scan it, and
//     would free the memory that they point to. [New], [MakeSlice], [Append] and
//     [Clone] reject types with Go pointers. Store [Ptr], [Slice] and [String]
//     instead.
//  2. You free what you allocate: with the same allocator, exactly once, and
//     exactly the slice, pointer or string that was returned, not a part of it.
//  3. Do not use memory after its Free or after the Close of its allocator. A Go
//     variable may still hold the address.
//
// The compiler checks none of these rules, and not every violation is detected at
// run time: see Errors and panics.
//
// # Words
//
//   - A block is a []byte that [Allocator.Alloc] returns. Its len is its cap, so
//     append never writes into a neighbouring block.
//   - An allocator allocates and frees blocks. A wrapper is an allocator that
//     gets its blocks from another one, called next.
//   - The collector manages the Go heap. Off-heap memory is all other memory.
//   - A page is the operating system's unit of memory. To reserve is to take
//     addresses, to commit is to back them with memory, to decommit is to return
//     that memory, and to release is to return the addresses.
//     The reserved memory of an arena or a pool is the memory that it holds from its parent.
//
// # Lifetimes
//
// A block is valid from the call that returned it until the first of
//
//   - Free of it, directly or by [Free], [FreeSlice] or [FreeString],
//   - a successful Resize, [Realloc], [ReallocZeroed], [Append] or [Grow] of it: the
//     result replaces it, at the same address or another,
//   - Close of its heap, or Reset or Close of its arena.
//
// After a failed call the block is unchanged and the caller still owns it. The
// *T, []T and string that the typed functions return are views of one block and
// live as long as it does. So are the results of Get of a [Ptr], [Slice] or
// [String]. The collector does not know blocks: an unreferenced block is a leak.
//
// The methods of a container say how long their results are valid. None outlives the
// container's memory.
//
// After Close of a heap, arena or pool, each call that allocates, resizes or frees a
// block, or changes the allocator in another way, panics: Alloc of size 0, Trim and
// Reset too. Close, Free of nil and calls that only report still work: Stats, Live,
// Owns, GoodSize, String.
//
// # Which allocator
//
//   - [Heap] is the general one: blocks of any size and alignment, freed in any
//     order, by any goroutine. [Default] is a heap for the whole process. A
//     library should take an [Allocator] from its caller.
//   - [Pages] is for few, large blocks: whole pages, which usually grow without a
//     copy and are returned to the operating system at Free.
//   - Package arena is for blocks that are freed together: allocating one costs
//     an addition, freeing one costs nothing.
//   - Package pool is for many blocks of one size: nodes, objects, buffers.
//   - Package cmalloc is for a heap shared with C code: malloc or jemalloc,
//     through cgo.
//
// Each wrapper adds one feature to any allocator. They combine in any order:
//
//   - [NewLimit]: a maximum of live bytes.
//   - [NewTagged]: the number of live blocks and bytes by purpose, and a label for the
//     purpose in profiles.
//   - [NewFallback]: a second allocator for when the first is out of memory.
//   - [NewScope]: Close frees the blocks that were forgotten.
//   - [NewLocked]: a mutex, for an allocator that is not safe for concurrent use.
//
// Containers keep their data in memory of any of these: packages hashmap and btree have
// maps, cache has caches within a bound, intern has sets of strings, and vector has growing arrays.
// docs/maps.md helps to choose, and says how long results are valid. Package secret keeps keys and
// tokens in locked pages of its own, apart from all allocators.
//
// # Errors and panics
//
// If memory runs out, calls return an error that matches [ErrOutOfMemory]: the
// operating system refused, a limit was reached, or a size overflowed. The call has
// changed nothing.
//
// Misuse panics with a message that begins with "freehold: ": a negative size, an
// alignment that is not a power of two, a type with Go pointers or, where the
// allocator can tell, a block that it did not allocate or that was freed before.
// Use after Free is not detected in a normal run: it reads or writes the memory's new
// contents. The environment variable FREEHOLD_DEBUG, which package track documents,
// detects it without a rebuild: FREEHOLD_DEBUG=guard stops at the access, and
// FREEHOLD_DEBUG=poison finds writes later. FREEHOLD_DEBUG=leak reports memory that was
// never freed.
// Package alloctest finds leaks and misuse in tests. Builds with -race allocate
// from Go memory, which the race detector sees.
package freehold
