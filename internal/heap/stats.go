// Stats: the figures of a heap, in jemalloc's terms, and the last figures of closed heaps.

package heap

import (
	"slices"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
)

// Stats is a snapshot of a heap. Sizes are bytes. While other goroutines allocate and free, a
// figure may be off by the calls in progress and by one magazine of each class.
type Stats struct {
	Name          string
	Allocated     int    // in live blocks, each counted as its class or its whole pages
	Active        int    // in runs that are not free: spans, large blocks, kept runs
	Resident      int    // an upper bound of the physical memory in use
	Retained      int    // address space without memory
	Metadata      int    // the heap's own bookkeeping, address tables included; part of Resident and Committed
	Committed     int    // what MaxBytes limits: dirty pages and Metadata
	MaxBytes      int    // the lower of the heap's and the payer's limits; 0 if there is none
	Blocks        int    // live blocks
	LargeBlocks   int    // live large blocks, included in Blocks
	LargeBytes    int    // the part of Allocated in LargeBlocks
	SlowAllocs    uint64 // allocations since the start that no cache served
	SlowFrees     uint64 // frees since the start that no cache took
	Refusals      uint64 // calls since the start that ran out of memory
	Collected     uint64 // containers since the start whose blocks the collector freed
	PurgedBytes   uint64 // given back to the system since the start
	Guarded       int    // live guarded blocks, included in Blocks
	GuardedEver   uint64 // blocks guarded since the start
	GuardsSkipped uint64 // blocks since the start that were chosen but not guarded
	Classes       []ClassStats
}

// ClassStats is the part of Stats for one class. Classes without spans are left out.
type ClassStats struct {
	Size   int // bytes in a block
	Blocks int // live
	Cached int // free, in caches and depots
	Free   int // free, in spans
	Spans  int
}

// Stats returns the heap's figures. It counts as count does. Fast paths of Alloc and Free keep no
// counters for it.
func (h *Heap) Stats() Stats {
	h.mustBeMade("Heap.Stats")
	st := Stats{Name: h.pages.Name, MaxBytes: int(h.pages.Limit())}
	holes := 0
	var t pages.Traffic
	p, _ := h.eachClass(func(class uint8, n small.Holding) {
		holes += n.Holes
		t.Add(n.Traffic)
		if n.Spans == 0 {
			return
		}
		size := small.ClassSize(class)
		st.Classes = append(st.Classes, ClassStats{Size: size, Blocks: n.Live, Cached: n.Cached, Free: n.Free, Spans: n.Spans})
		st.Blocks += n.Live
		st.Allocated += n.Live * size
	})
	t.Add(p.Traffic)
	w := h.watch.Figures()
	t.Add(w.Traffic)
	st.Guarded, st.GuardedEver, st.GuardsSkipped = w.Guarded.Blocks, w.Traffic.Allocs, w.Skipped
	st.SlowAllocs, st.SlowFrees, st.PurgedBytes = t.Allocs, t.Frees, t.Purged
	st.Refusals, st.Collected = h.refused.Load(), h.collected.Load()
	st.LargeBlocks = p.Large.Blocks + w.Large.Blocks
	st.LargeBytes = int(p.Large.Bytes) + w.Large.Bytes
	st.Blocks += p.Large.Blocks + w.Guarded.Blocks
	st.Allocated += int(p.Large.Bytes) + w.Guarded.Bytes
	st.Metadata = int(p.Metadata)
	st.Committed = int(p.Committed)
	st.Active = st.Committed - st.Metadata - int(p.Dirty)
	st.Resident = st.Committed - holes
	st.Retained = int(p.Total) - (st.Committed - st.Metadata) + holes
	h.countFreed(&st)
	return st
}

// countFreed subtracts the blocks in quarantine from the live blocks of st, and adds small ones to
// the cached blocks. st may not include a block that came into quarantine after it was counted, so
// countFreed lets no figure fall below 0.
func (h *Heap) countFreed(st *Stats) {
	var n [small.NumClasses]int
	h.watch.EachFreed(func(addr uintptr) {
		s := small.SpanAt(addr)
		if s.Kind == pages.BlockRun {
			n[s.Class()]++
		} else if st.LargeBlocks > 0 {
			in := min(int(s.Bytes()), st.LargeBytes)
			st.Blocks--
			st.Allocated -= in
			st.LargeBlocks--
			st.LargeBytes -= in
		}
	})
	for i := range st.Classes {
		c := &st.Classes[i]
		in := min(n[small.ClassOf(c.Size, 1)], c.Blocks)
		c.Blocks -= in
		c.Cached += in
		st.Blocks -= in
		st.Allocated -= in * c.Size
	}
}

// eachClass calls f with the holding of each class. It returns the figures of the page heap without
// the kept runs, and the bytes of the kept runs. It waits until an ongoing drain ends, because it
// would miss the blocks in the caches that the drain has taken.
func (h *Heap) eachClass(f func(class uint8, n small.Holding)) (p pages.Figures, kept int) {
	h.caches.counting.Lock()
	defer h.caches.counting.Unlock()
	var cached [small.NumClasses]int
	large := h.caches.count(&cached)
	for i := range cached {
		f(uint8(i), h.small.Holding(uint8(i), cached[i]))
	}
	p = h.pages.Figures()
	p.Large.Blocks -= min(large.Blocks, p.Large.Blocks)
	p.Large.Bytes -= min(large.Bytes, p.Large.Bytes)
	return p, int(large.Bytes)
}

// counts tells where a heap's memory is, in bytes.
type counts struct {
	live       int // in live blocks
	cached     int // in free blocks of caches and depots
	emptySpans int // in spans without a block out, and in limbo
}

// count adds up a heap's memory. It locks the depots of one class after the other, which takes
// 10 µs with two homes and 0.2 ms with 64.
func (h *Heap) count() (n counts) {
	p, kept := h.eachClass(func(class uint8, in small.Holding) {
		size := small.ClassSize(class)
		n.live += in.Live * size
		n.cached += in.Cached * size
		n.emptySpans += in.EmptySpans * int(small.SpanPages(class)) * pages.PageBytes
	})
	n.emptySpans += h.small.LimboBytes()
	n.live += int(p.Large.Bytes)
	n.cached += kept
	return n
}

// slowCalls returns the number of calls so far that no cache served. It takes no lock of a depot: a
// 25th to a 40th of the time of count.
func (h *Heap) slowCalls() uint64 {
	t := h.pages.Figures().Traffic
	return h.small.Calls() + t.Allocs + t.Frees
}

const (
	// Caches hold much if they have more than minHoard bytes, and more than a part of the live
	// bytes: tickHoard for a tick, growthHoard for a small heap that grows. The bounds of depots
	// and kept runs, each a 32nd of the committed bytes, permit more than growthHoard in a large
	// heap.
	minHoard    = 512 << 10
	tickHoard   = 8
	growthHoard = 16
)

// cachesHoldMuch reports whether a drain would free much: more than this part of the live bytes.
func (n counts) cachesHoldMuch(share int) bool {
	return n.cached+n.emptySpans > max(minHoard, n.live/share)
}

// KeepsClosed reports whether Close keeps a heap's last figures. FREEHOLD_DEBUG=stats sets it.
var KeepsClosed = mode.On("stats")

// mostClosed bounds the closed heaps whose figures are kept.
const mostClosed = 1000

// closed has the last figures of closed heaps. It has a leaf lock, because Close takes it while it
// holds Scavenging.
var closed struct {
	mu    lockrank.Mutex[lockrank.Leaf]
	stats []Stats // of at most mostClosed heaps, without their classes
	more  int     // closed heaps whose figures were not kept
}

// keepClosed keeps the figures of a heap that is about to close.
func keepClosed(st Stats) {
	closed.mu.Lock()
	defer closed.mu.Unlock()
	if len(closed.stats) == mostClosed {
		closed.more++
		return
	}
	st.Classes = nil
	closed.stats = append(closed.stats, st)
}

// Closed returns the figures of closed heaps right before their Close, in the order of their
// Closes, and the number of further closed heaps, whose figures were not kept: see KeepsClosed.
func Closed() (all []Stats, more int) {
	closed.mu.Lock()
	defer closed.mu.Unlock()
	return slices.Clone(closed.stats), closed.more
}
