// Stats: what a heap holds, in jemalloc's words.

package freehold

import "github.com/freehold-go/freehold/internal/heap"

// Stats is a snapshot of a heap's memory, in bytes and blocks. While others
// allocate and free, each figure may be off by the calls in progress and by a
// few dozen blocks of each class.
//
// Committed counts whole pages of 8 KiB: it is what HeapOptions.MaxBytes limits.
// Resident is at most Committed. Neither counts what huge pages make resident
// around a page in use: see HeapOptions.HugePages.
type Stats struct {
	Name string // HeapOptions.Name

	Live       int // blocks that are live
	LiveBytes  int // their bytes, each counted as its class's block size or its whole pages
	Large      int // live blocks larger than 32 KiB, and any in whole pages; part of Live
	LargeBytes int // their bytes; part of LiveBytes

	Active    int // bytes of the pages in use: those with a live block, or a free one in a cache or a span
	Resident  int // an upper bound of the physical memory in bytes: pages never touched, or swapped out, count too
	Retained  int // bytes of addresses that are held without memory behind them
	Metadata  int // bytes of the heap's own bookkeeping; part of Resident and Committed
	Committed int // bytes of pages that may hold memory, Metadata included
	MaxBytes  int // HeapOptions.MaxBytes, the limit of Committed; 0 if there is none

	SlowAllocs  uint64 // calls of Alloc since the start that no cache served: misses, and all large blocks
	SlowFrees   uint64 // calls of Free since the start that no cache took: misses, and all large blocks
	Refusals    uint64 // calls since the start that failed for want of memory
	PurgedBytes uint64 // bytes given back to the system since the start

	Classes []ClassStats // by block size; classes that hold nothing are left out
}

// ClassStats is the part of [Stats] that the blocks of one size account for.
type ClassStats struct {
	BlockSize int // bytes of a block
	Live      int // blocks that are live
	Cached    int // free blocks in processors' caches, in a Cache, or on their way between them
	Free      int // free blocks in spans
	Spans     int // spans, each a run of pages cut into such blocks
}

// Stats returns the heap's figures. Alloc and Free count nothing for it; the
// call adds up what spans and caches hold, which takes some microseconds.
func (h *Heap) Stats() Stats { return statsOf(h.h.Stats()) }

// Live returns the number of live blocks. It costs a call of Stats.
func (h *Heap) Live() int { return h.h.Stats().Blocks }

// statsOf converts the engine's figures.
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
		PurgedBytes: s.PurgedBytes,
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
