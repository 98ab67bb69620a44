// Check: the invariants of a heap, verified.
//
// Each verify looks at one thing and returns what is wrong with it. Heap.verify
// looks at all of a heap at rest, and the tests call it. In debug builds slow paths
// call central.verify and pageHeap.verifyFree, while others are at work: see
// debug_on.go. Nothing else calls any of them, so the linker leaves them out of
// other programs. They have no build tag because the tests of every build need
// them.

package heap

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// tally is what a walk over the runs of a heap found.
type tally struct {
	dirty    uintptr // pages that hold memory
	free     uintptr // of free runs, pages that hold memory
	oversize uintptr // of these, in runs with oversizePages of them
	tables   uintptr // bytes
	total    uintptr // bytes
	large    largeCount
	classes  [numClasses]classTally
	sampled  int
	guarded  guardCount
	metadata map[uintptr]uintptr // objects by size
}

type classTally struct{ live, holes, spans, partial, empty int }

// object notes an object of metadata of that size.
func (n *tally) object(size uintptr) { n.metadata[roundUp(size, objectUnit)]++ }

// verify verifies the invariants of h and of all that it has. Nobody else uses h.
func (h *Heap) verify() error {
	h.pages.scavenging.Lock()
	defer h.pages.scavenging.Unlock()
	n := &tally{metadata: map[uintptr]uintptr{}}
	for _, segment := range joined(h.pages.segments) {
		if err := h.verifySegment(segment, n); err != nil {
			return err
		}
	}
	if got := h.countRecords(); got != n.sampled {
		return fmt.Errorf("%d records of %d sampled blocks", got, n.sampled)
	}
	if live := h.theGuards().live; live != n.guarded {
		return fmt.Errorf("guarded is %+v, want %+v", live, n.guarded)
	}
	h.caches.Each(func(c *cache) { c.eachObject(n.object) })
	if err := h.pages.verify(n); err != nil {
		return err
	}
	for i := range h.central {
		c := &h.central[i]
		if err := c.verify(h, math.MaxInt); err != nil {
			return err
		}
		if got, want := (classTally{c.out, c.holes, c.spans, c.partial.length(), c.empty}), n.classes[i]; got != want {
			return fmt.Errorf("class %d counts %+v, and has %+v", i, got, want)
		}
		if c.stocked > c.out {
			return fmt.Errorf("class %d: %d blocks stocked of %d out", i, c.stocked, c.out)
		}
		c.eachObject(n.object)
	}
	if got := h.pages.metadata.objects(); !maps.Equal(got, n.metadata) {
		return fmt.Errorf("objects of metadata by size: %v, of which %v are in use", got, n.metadata)
	}
	return nil
}

// verifySegment verifies neighbouring segments, run by run.
func (h *Heap) verifySegment(segment addrRange, n *tally) error {
	r := addresses.regionOf(segment.base)
	end := segment.base + segment.size
	n.total += segment.size
	for at := segment.base; at < end; at += segmentBytes {
		n.tables += heldBytes + uintptr(*r.charged(at))*tableBytes
	}
	for at := segment.base; at < end; {
		s := *r.page(at)
		if left := h.theGuards().uncarved; s == nil && at == left.base {
			at += left.size
			continue
		}
		if s == nil {
			return fmt.Errorf("page %#x: no run begins here", at)
		}
		if s.base != at || s.pages == 0 || s.end() > end || s.owner != h.pages.id {
			return fmt.Errorf("page %#x: span %+v does not fit", at, *s)
		}
		if err := h.verifyRun(r, s, n); err != nil {
			return err
		}
		at = s.end()
	}
	return nil
}

// verifyRun verifies one run.
func (h *Heap) verifyRun(r *region, s *span, n *tally) error {
	n.object(spanBytes)
	if r.tableCost(s.base, s.end()-pageBytes) != 0 {
		return fmt.Errorf("run %#x: its words are not charged", s.base)
	}
	for in := s.base + pageBytes; in < s.end(); in += pageBytes {
		want := (*span)(nil)
		if s.kind == blockRun || s.kind == guardRun || s.kind == freeRun && in == s.end()-pageBytes {
			want = s
		}
		if *r.page(in) != want {
			return fmt.Errorf("page %#x inside run %#x of kind %d: word %p", in, s.base, s.kind, *r.page(in))
		}
	}
	dirty := r.dirty.count(r.pageIndex(s.base), s.pages)
	n.dirty += dirty
	if s.kind != freeRun && s.kind != guardRun && dirty != s.pages {
		return fmt.Errorf("run %#x of kind %d: %d of %d pages are dirty", s.base, s.kind, dirty, s.pages)
	}
	switch s.kind {
	case freeRun:
		if !h.pages.free.lists[bin(s.pages)].contains(s) {
			return fmt.Errorf("free run %#x of %d pages is not on its bin", s.base, s.pages)
		}
		n.free += dirty
		if dirty >= oversizePages {
			n.oversize += dirty
		}
		return h.pages.verifyFree(r, s)
	case largeRun:
		n.large.blocks++
		n.large.bytes += s.bytes()
		if size := h.sampledSize(s, s.base); s.sampled && size != s.size {
			return fmt.Errorf("large block %#x of %d bytes: %d bytes sampled", s.base, s.size, size)
		} else if s.sampled {
			n.sampled++
		}
	case guardRun:
		return h.verifyGuarded(s, dirty, n)
	case blockRun:
		c, class := &n.classes[s.class], &classes[s.class]
		c.live += int(s.live)
		c.holes += int(s.holes)
		c.spans++
		if free := uintptr(s.live) < class.blocks; free {
			c.partial++
		}
		if s.live == 0 {
			c.empty++
		}
		n.object(class.bitsBytes())
		return h.verifyBlocks(r, s, n)
	}
	return nil
}

// verifyGuarded verifies a guard run, of which so many pages are dirty.
func (h *Heap) verifyGuarded(s *span, dirty uintptr, n *tally) error {
	want := uintptr(0)
	if s.live != 0 {
		n.guarded.add(1, uintptr(h.goodSize(int(s.size))))
	}
	if s.live != 0 || dirty != 0 && !h.theGuards().queued(s) { // its pages could not be closed
		_, want = pagesAround(addresses.regionOf(s.base), s.inUse())
	}
	if dirty != want || s.live > 1 || s.live == 0 && s.sampled {
		return fmt.Errorf("guard run %#x: %d pages are dirty, want %d; live %d, sampled %v", s.base, dirty, want, s.live, s.sampled)
	}
	if s.sampled {
		n.sampled++
	}
	return nil
}

// queued reports whether s is in quarantine or idle.
func (g *guards) queued(s *span) bool {
	return s.next != 0 || s.prev != 0 || g.quarantine.head == s.addr() || g.idle[orderOf(s)].head == s.addr()
}

// verifyFree verifies a free run and that its neighbours are not free. mu is held.
func (p *pageHeap) verifyFree(r *region, s *span) error {
	dirty := r.dirty.count(r.pageIndex(s.base), s.pages)
	if s.kind != freeRun || s.owner != p.id || s.dirty != dirty || s.statuses != 0 {
		return fmt.Errorf("%d pages hold memory in free run %+v", dirty, *s)
	}
	if p.freeNeighbour(r, s.base-pageBytes) != nil || p.freeNeighbour(r, s.end()) != nil {
		return fmt.Errorf("free run %#x is next to a free run", s.base)
	}
	return nil
}

// verifyBlocks verifies the blocks of a span and their entries in the page map.
func (h *Heap) verifyBlocks(r *region, s *span, n *tally) error {
	if err := s.verify(h.pages.id, s.class); err != nil {
		return err
	}
	blocks := classes[s.class].blocks
	if free, on := uintptr(s.live) < blocks, h.central[s.class].partial.contains(s); on != free {
		return fmt.Errorf("span %#x with %d of %d blocks live: on the list: %v", s.base, s.live, blocks, on)
	}
	for i := range blocks {
		at := s.base + i*s.size
		st, size := *statusAt(s.statusOf(i)), h.sampledSize(s, at)
		switch {
		case size != 0:
			n.sampled++
		case st < freeZero:
			size = uintptr(st)
		}
		if st < freeZero && (s.free.has(i) || size == 0 || size > s.size) {
			return fmt.Errorf("span %#x block %d: free %v, status %d, %d bytes sampled", s.base, i, s.free.has(i), st, size)
		}
		want := s.statusOf(i)
		if r != &addresses.first || h.mapID>>mapHeapShift == noMapID {
			want = 0
		}
		begin, _ := lookUp(at, h.mapID)
		inside, _ := lookUp(at+s.size/2, h.mapID)
		if begin != want || inside != 0 {
			return fmt.Errorf("span %#x block %d: statuses at %#x and %#x, want %#x", s.base, i, begin, inside, want)
		}
	}
	return nil
}

// verify verifies a span of blocks. The lock of its central is held.
func (s *span) verify(owner uint32, class uint8) error {
	blocks := classes[class].blocks
	free := s.free.count(0, blocks)
	if s.kind != blockRun || s.class != class || s.owner != owner || free+uintptr(s.live) != blocks || spanAt(s.base) != s {
		return fmt.Errorf("class %d: %d of %d blocks are free in span %+v", class, free, blocks, *s)
	}
	return nil
}

// verify verifies the stock of a class and the first of its spans with free blocks,
// some at most. c.mu is held, or nobody else uses the heap.
func (c *central) verify(h *Heap, some int) error {
	stocked := 0
	for at := c.stock.head; at != 0; at = magazineAt(at).next {
		stocked += int(magazineAt(at).n)
	}
	if stocked != c.stocked || c.empty > c.spans {
		return fmt.Errorf("class %d: %d blocks stocked, counted %d; %d of %d spans empty", c.class, stocked, c.stocked, c.empty, c.spans)
	}
	if c.stock.n > maxStock || c.emptyMagazines.n > maxEmptyMagazines {
		return fmt.Errorf("class %d: %d magazines stocked and %d empty ones kept, want %d and %d at most", c.class, c.stock.n, c.emptyMagazines.n, maxStock, maxEmptyMagazines)
	}
	for at := c.partial.head; at != 0 && some > 0; some-- {
		s := spanPtr(at)
		if err := s.verify(h.pages.id, c.class); err != nil {
			return err
		}
		if uintptr(s.live) == classes[c.class].blocks {
			return fmt.Errorf("class %d: span %#x has no free block and is on the list", c.class, s.base)
		}
		at = s.next
	}
	return nil
}

// verify verifies what p counts.
func (p *pageHeap) verify(n *tally) error {
	if want := n.dirty*pageBytes + p.tables + p.metadata.bytes; p.committed != want {
		return fmt.Errorf("committed is %d, want %d", p.committed, want)
	}
	if p.maxBytes > 0 && p.committed > p.maxBytes {
		return fmt.Errorf("committed is %d, above the limit of %d", p.committed, p.maxBytes)
	}
	if p.dirty != n.free || p.leastDirty > p.dirty {
		return fmt.Errorf("dirty is %d, want %d; leastDirty is %d", p.dirty, n.free, p.leastDirty)
	}
	if o := &p.oversize; o.dirty != n.oversize || o.least > o.dirty || o.back > o.sent {
		return fmt.Errorf("oversize: dirty is %d, want %d; least is %d, sent %d, back %d", o.dirty, n.oversize, o.least, o.sent, o.back)
	}
	if p.tables != n.tables || p.total != n.total || p.large != n.large {
		return fmt.Errorf("tables is %d, total %d, large %+v; want %d, %d, %+v", p.tables, p.total, p.large, n.tables, n.total, n.large)
	}
	var slabs uintptr
	for _, at := range p.metadata.room {
		for ; at != 0; at = slabAt(at).next {
			if s := slabAt(at); s.live >= s.capacity() || s.live > s.carved {
				return fmt.Errorf("slab %+v is on the list of slabs with room", *s)
			}
			slabs += slabBytes
		}
	}
	if slabs > p.metadata.bytes {
		return fmt.Errorf("%d bytes in slabs with room, %d in all", slabs, p.metadata.bytes)
	}
	return nil
}

// eachObject calls f with the size of each object of metadata that c is made of.
func (c *cache) eachObject(f func(size uintptr)) {
	f(cacheBytes)
	for i := range classes {
		if c.loaded(uint8(i)) != nil {
			f(classes[i].magazineBytes())
		}
		if c.spares[i] != 0 {
			f(classes[i].magazineBytes())
		}
	}
}

// eachObject calls f with the size of each object of metadata that c has, but for
// those of its spans.
func (c *central) eachObject(f func(size uintptr)) {
	class := &classes[c.class]
	for range c.stock.n + c.emptyMagazines.n {
		f(class.magazineBytes())
	}
	for at := c.limbo; at != 0; at = uintptr(*bitmap(at + class.statusesBytes()).word(0)) {
		f(class.bitsBytes())
	}
}

// objects returns how many objects there are, by size.
func (m *metadata) objects() map[uintptr]uintptr {
	n := map[uintptr]uintptr{}
	for _, segment := range m.segments {
		for at := segment; at < segment+metadataSegmentBytes; at += slabBytes {
			if slices.Contains(m.unused, at) {
				continue
			}
			if s := slabAt(at); s.live > 0 {
				n[s.size] += s.live
			}
		}
	}
	return n
}

// countRecords returns how many sampled blocks h has.
func (h *Heap) countRecords() (n int) {
	samples.mu.Lock()
	defer samples.mu.Unlock()
	for at := h.records.Load(); at != 0; at = recordAt(at).after {
		n++
	}
	return n
}

// joined returns ranges in order of address, neighbours of one region as one.
func joined(in []addrRange) (out []addrRange) {
	in = slices.SortedFunc(slices.Values(in), func(a, b addrRange) int { return cmp.Compare(a.base, b.base) })
	for _, f := range in {
		if last := len(out) - 1; last >= 0 && out[last].base+out[last].size == f.base && addresses.regionOf(out[last].base) == addresses.regionOf(f.base) {
			out[last].size += f.size
		} else {
			out = append(out, f)
		}
	}
	return out
}

func (l *list) contains(s *span) bool {
	for at := l.head; at != 0; at = spanPtr(at).next {
		if at == s.addr() {
			return true
		}
	}
	return false
}

func (l *list) length() (n int) {
	for at := l.head; at != 0; at = spanPtr(at).next {
		n++
	}
	return n
}
