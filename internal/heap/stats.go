// Stats: what a heap holds, in jemalloc's words.

package heap

// Stats is a snapshot of a heap. Sizes are bytes. Taken while others allocate
// and free, its parts are each right to within the calls under way.
type Stats struct {
	Name        string
	Allocated   int // in live blocks, each counted as its class or its whole pages
	Active      int // in runs that hold a block, live or cached
	Resident    int // an upper bound of the physical memory in use
	Retained    int // address space that is held without memory behind it
	Metadata    int // the heap's own bookkeeping, address tables included; part of Resident and Committed
	Committed   int // what MaxBytes limits: pages that may hold memory, and Metadata
	MaxBytes    int // the limit; 0 if there is none
	Blocks      int // live blocks
	LargeBlocks int // those of them that are larger than the largest class
	LargeBytes  int // the part of Allocated that they take
	Classes     []ClassStats
}

// ClassStats is the part of Stats that blocks of one class account for.
// Classes that were never used are left out.
type ClassStats struct {
	Size   int // bytes in a block
	Blocks int // live
	Cached int // free, in processors' caches or on their way
	Free   int // free, in spans
	Spans  int
}

// Stats returns the heap's figures now. It costs some microseconds; Alloc and
// Free count nothing for it.
func (h *Heap) Stats() Stats {
	st := Stats{Name: h.name, MaxBytes: int(h.maxBytes)}
	h.counting.Lock()
	var cached [numClasses]int
	h.countCached(&cached)
	holes := 0
	for i := range h.central {
		c := &h.central[i]
		c.mu.Lock()
		spans, out, stocked := c.spans, c.out, c.stocked
		holes += c.holes
		c.mu.Unlock()
		if spans == 0 {
			continue
		}
		class := &classes[i]
		in := min(stocked+cached[i], out)
		st.Classes = append(st.Classes, ClassStats{
			Size:   int(class.size),
			Blocks: out - in,
			Cached: in,
			Free:   spans*int(class.blocks) - out,
			Spans:  spans,
		})
		st.Blocks += out - in
		st.Allocated += (out - in) * int(class.size)
	}
	h.counting.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &h.runs
	st.LargeBlocks, st.LargeBytes = h.large.blocks, int(h.large.bytes)
	st.Blocks += st.LargeBlocks
	st.Allocated += st.LargeBytes
	st.Metadata = int(h.meta.bytes + r.tables)
	st.Committed = int(r.committed)
	st.Active = st.Committed - st.Metadata - int((r.dirty+r.purging)*pageBytes)
	st.Resident = st.Committed - holes
	st.Retained = int(r.total) - (st.Committed - st.Metadata) + holes
	return st
}
