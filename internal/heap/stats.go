// Stats: the figures of a heap, in jemalloc's terms.

package heap

import "github.com/freehold-go/freehold/internal/pages"

// Stats is a snapshot of a heap. Sizes are bytes. While others allocate and free, each
// figure may be off by the calls in progress and by a magazine of each class.
type Stats struct {
	Name          string
	Allocated     int    // in live blocks, each counted as its class or its whole pages
	Active        int    // in runs that hold a block, live or cached
	Resident      int    // an upper bound of the physical memory in use
	Retained      int    // address space without memory
	Metadata      int    // the heap's own bookkeeping, address tables included; part of Resident and Committed
	Committed     int    // what MaxBytes limits: dirty pages and Metadata
	MaxBytes      int    // the limit, or that of the payer if it is lower; 0 if there is none
	Blocks        int    // live blocks
	LargeBlocks   int    // live large blocks, included in Blocks
	LargeBytes    int    // their part of Allocated
	SlowAllocs    uint64 // allocations since the start that no cache served
	SlowFrees     uint64 // frees since the start that no cache took
	Refusals      uint64 // calls since the start that ran out of memory
	PurgedBytes   uint64 // given back to the system since the start
	Guarded       int    // live guarded blocks, included in Blocks
	GuardedEver   uint64 // blocks guarded since the start
	GuardsSkipped uint64 // blocks since the start that were to be guarded, and were not
	Classes       []ClassStats
}

// ClassStats is the part of Stats for one class. Classes without spans are left out.
type ClassStats struct {
	Size   int // bytes in a block
	Blocks int // live
	Cached int // free, in caches and stocks
	Free   int // free, in spans
	Spans  int
}

// Stats returns the heap's figures. It takes some microseconds. Alloc and Free count
// nothing for it.
func (h *Heap) Stats() Stats {
	h.mustBeMade("Heap.Stats")
	st := Stats{Name: h.pages.Name, MaxBytes: int(h.pages.Limit())}
	holes := 0
	var t pages.Traffic
	p, _ := h.eachClass(func(class *class, n holding) {
		holes += n.holes
		t.Add(n.Traffic)
		if n.spans == 0 {
			return
		}
		st.Classes = append(st.Classes, ClassStats{
			Size:   int(class.size),
			Blocks: n.live,
			Cached: n.cached,
			Free:   n.free,
			Spans:  n.spans,
		})
		st.Blocks += n.live
		st.Allocated += n.live * int(class.size)
	})
	t.Add(p.Traffic)
	w := h.watch.Figures()
	t.Add(w.Traffic)
	st.Guarded, st.GuardedEver, st.GuardsSkipped = w.Guarded.Blocks, w.Traffic.Allocs, w.Skipped
	st.SlowAllocs, st.SlowFrees, st.PurgedBytes = t.Allocs, t.Frees, t.Purged
	st.Refusals = h.refused.Load()
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

// countFreed makes the figures of blocks in quarantine those of free ones. Blocks that came
// there after st was counted may not be in it, so no figure falls below 0.
func (h *Heap) countFreed(st *Stats) {
	var n [numClasses]int
	h.watch.EachFreed(func(addr uintptr) {
		s := spanAt(addr)
		if s.Kind == pages.BlockRun {
			n[s.class]++
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
		in := min(n[classOf[c.Size/8]], c.Blocks)
		c.Blocks -= in
		c.Cached += in
		st.Blocks -= in
		st.Allocated -= in * c.Size
	}
}

// holding is what a heap has of one class. live, cached and free are blocks.
type holding struct {
	live   int
	cached int // free, in caches and stocks
	free   int // free, in spans
	spans  int
	empty  int // spans without a block in use
	holes  int // bytes of free blocks given back to the system
	pages.Traffic
}

// eachClass calls f with what the heap has of each class. It returns the figures of the page
// heap, without large blocks in caches, and the bytes of these. It waits for an ongoing drain:
// the blocks of caches that a drain has taken are nowhere that eachClass counts.
func (h *Heap) eachClass(f func(class *class, n holding)) (p pages.Figures, cachedLarge int) {
	h.counting.Lock()
	defer h.counting.Unlock()
	var cached [numClasses]int
	large := h.countCached(&cached)
	for i := range h.central {
		f(&classes[i], h.central[i].holding(h, cached[i]))
	}
	p = h.pages.Figures()
	p.Large.Blocks -= min(large.Blocks, p.Large.Blocks)
	p.Large.Bytes -= min(large.Bytes, p.Large.Bytes)
	return p, int(large.Bytes)
}

// holding returns what the class has, of which caches have that many blocks.
func (c *central) holding(h *Heap, cached int) (n holding) {
	h.lockStocks(c.class)
	defer h.unlockStocks(c.class)
	for i := range h.stocks {
		s := &h.stocks[i][c.class]
		cached += int(s.full.blocks)
		n.Allocs += s.allocs
		n.Frees += s.frees
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.cached = min(cached, c.out)
	n.live, n.free = c.out-n.cached, c.spans*int(classes[c.class].blocks)-c.out
	n.spans, n.empty, n.holes, n.Purged = c.spans, c.empty, c.holes, c.purged
	return n
}
