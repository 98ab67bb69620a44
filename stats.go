// Stats: a heap's memory, in jemalloc's terms.

package freehold

import "github.com/freehold-go/freehold/internal/heap"

// Stats is a snapshot of a heap's memory, in bytes and blocks. While other
// goroutines allocate and free, each figure may be off by the calls in progress
// and by a few dozen blocks of each class.
//
// HeapOptions.MaxBytes limits Committed. It is the sum of whole pages of 8 KiB and of the
// heap's part of the tables that all heaps share, so it is no multiple of a page.
// Resident is at most Committed. Neither includes the memory that huge pages make
// resident around a page in use: see HeapOptions.HugePages.
type Stats struct {
	Name string // HeapOptions.Name

	Live       int // live blocks
	LiveBytes  int // their bytes, rounded up to the class's block size or to whole pages
	Large      int // live blocks larger than 32 KiB or in whole pages; part of Live
	LargeBytes int // their bytes; part of LiveBytes

	Active    int // bytes of pages in use: with a live block, or a free one in a cache or a span
	Resident  int // upper bound of physical memory in bytes: includes pages never touched or swapped out
	Retained  int // bytes of reserved addresses without memory
	Metadata  int // bytes of the heap's own bookkeeping; part of Resident and Committed
	Committed int // bytes of pages that may hold memory, Metadata included
	MaxBytes  int // HeapOptions.MaxBytes, the limit of Committed; 0 if there is none

	SlowAllocs  uint64 // calls of Alloc so far that missed the caches, as all blocks above 1 MiB do
	SlowFrees   uint64 // calls of Free so far that missed the caches, as all blocks above 1 MiB do
	Refusals    uint64 // calls so far that failed for lack of memory
	Collected   uint64 // containers so far that were dropped and closed by the collector: see Options.Collect of cache and hashmap
	PurgedBytes uint64 // bytes returned to the system so far

	Guarded       int    // live blocks that are guarded: see track.SetGuardRate; part of Live
	GuardedEver   uint64 // blocks guarded so far
	GuardsSkipped uint64 // blocks so far that were chosen but not guarded: no budget, no memory, too large

	Classes []ClassStats // by block size; empty classes are left out
}

// ClassStats is the part of [Stats] for blocks of one size.
type ClassStats struct {
	BlockSize int // bytes of a block
	Live      int // live blocks
	Cached    int // free blocks in processors' caches and in depots
	Free      int // free blocks in spans
	Spans     int // spans: runs of pages cut into blocks of this size
}

// Stats returns the heap's figures. Alloc and Free keep no counters for it: it
// adds up the spans and caches, which takes 10 µs with two processors and 0.2 ms
// with 64.
func (h *Heap) Stats() Stats { return statsOf(h.h.Stats()) }

// Live returns the number of live blocks. It costs a call of Stats.
func (h *Heap) Live() int { return h.h.Stats().Blocks }

// statsOf converts the figures of internal/heap.
func statsOf(s heap.Stats) Stats {
	st := Stats{
		Name:       s.Name,
		Live:       s.Blocks,
		LiveBytes:  s.Allocated,
		Large:      s.LargeBlocks,
		LargeBytes: s.LargeBytes,
		Active:     s.Active,
		Resident:   s.Resident,
		Retained:   s.Retained,
		Metadata:   s.Metadata,
		Committed:  s.Committed,
		MaxBytes:   s.MaxBytes,

		SlowAllocs:  s.SlowAllocs,
		SlowFrees:   s.SlowFrees,
		Refusals:    s.Refusals,
		Collected:   s.Collected,
		PurgedBytes: s.PurgedBytes,

		Guarded:       s.Guarded,
		GuardedEver:   s.GuardedEver,
		GuardsSkipped: s.GuardsSkipped,
	}
	for _, c := range s.Classes {
		st.Classes = append(st.Classes, ClassStats{
			BlockSize: c.Size,
			Live:      c.Blocks,
			Cached:    c.Cached,
			Free:      c.Free,
			Spans:     c.Spans,
		})
	}
	return st
}

// AllStats returns the Stats of all open heaps in order of creation: [Default]
// first. They include [Pages] if it was called, and heaps dropped without Close,
// which keep their memory. Add them up for the total:
//
//	var total freehold.Stats
//	for _, st := range freehold.AllStats() {
//		total.LiveBytes += st.LiveBytes
//		total.Committed += st.Committed
//	}
//
// With FREEHOLD_DEBUG=leak, a heap dropped without Close is left out after its report.
//
// It costs a call of Stats for each heap. NewHeap and Close block while it runs.
func AllStats() []Stats {
	var all []Stats
	heap.EachOpen(func(h *heap.Heap) { all = append(all, statsOf(h.Stats())) })
	return all
}
