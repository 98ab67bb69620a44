// Verify: the invariants of a page heap.
//
// Tests call it, and nothing else: the linker leaves it out of other programs.

package heap

import (
	"fmt"
	"maps"
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
	metadata map[uintptr]uintptr // objects by size
}

// object notes an object of metadata of that size.
func (n *tally) object(size uintptr) {
	if n.metadata == nil {
		n.metadata = map[uintptr]uintptr{}
	}
	n.metadata[roundUp(size, objectUnit)]++
}

// verify verifies the invariants of p. It calls above for the runs of the layer above and for
// large blocks, with the number of their pages that hold memory. n has the objects of metadata
// of the layer above, but for those that above notes. gap is addresses in which no run begins.
// scavenging is held, and nobody else uses the heap.
func (p *pageHeap) verify(n *tally, gap addrRange, above func(s *pspan, dirty uintptr) error) error {
	for _, segment := range joined(p.segments) {
		if err := p.verifySegment(n, segment, gap, above); err != nil {
			return err
		}
	}
	if err := p.verifyCounts(n); err != nil {
		return err
	}
	if got := p.metadata.objects(); !maps.Equal(got, n.metadata) && len(got)+len(n.metadata) > 0 {
		return fmt.Errorf("objects of metadata by size: %v, of which %v are in use", got, n.metadata)
	}
	return nil
}

// verifySegment verifies neighbouring segments, run by run.
func (p *pageHeap) verifySegment(n *tally, segment, gap addrRange, above func(s *pspan, dirty uintptr) error) error {
	r := addresses.regionOf(segment.base)
	end := segment.base + segment.size
	n.total += segment.size
	for at := segment.base; at < end; at += segmentBytes {
		n.tables += heldBytes + uintptr(*r.charged(at))*tableBytes
	}
	for at := segment.base; at < end; {
		s := *r.page(at)
		if s == nil && gap.size > 0 && at == gap.base {
			at += gap.size
			continue
		}
		if s == nil {
			return fmt.Errorf("page %#x: no run begins here", at)
		}
		if s.base != at || s.pages == 0 || s.end() > end || s.owner != p.id {
			return fmt.Errorf("page %#x: span %+v does not fit", at, *s)
		}
		if err := p.verifyRun(n, r, s, above); err != nil {
			return err
		}
		at = s.end()
	}
	return nil
}

// verifyRun verifies one run.
func (p *pageHeap) verifyRun(n *tally, r *region, s *pspan, above func(s *pspan, dirty uintptr) error) error {
	n.object(spanBytes)
	if r.tableCost(s.base, s.end()-pageBytes) != 0 {
		return fmt.Errorf("run %#x: its words are not charged", s.base)
	}
	for in := s.base + pageBytes; in < s.end(); in += pageBytes {
		want := (*pspan)(nil)
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
		if !p.free.lists[bin(s.pages)].contains(s) {
			return fmt.Errorf("free run %#x of %d pages is not on its bin", s.base, s.pages)
		}
		n.free += dirty
		if dirty >= oversizePages {
			n.oversize += dirty
		}
		return p.verifyFree(r, s)
	case largeRun:
		n.large.blocks++
		n.large.bytes += s.bytes()
		return above(s, dirty)
	case blockRun, guardRun:
		return above(s, dirty)
	}
	return nil
}

// verifyFree verifies a free run and that its neighbours are not free. mu is held.
func (p *pageHeap) verifyFree(r *region, s *pspan) error {
	dirty := r.dirty.count(r.pageIndex(s.base), s.pages)
	if s.kind != freeRun || s.owner != p.id || s.dirty != dirty {
		return fmt.Errorf("%d pages hold memory in free run %+v", dirty, *s)
	}
	if p.freeNeighbour(r, s.base-pageBytes) != nil || p.freeNeighbour(r, s.end()) != nil {
		return fmt.Errorf("free run %#x is next to a free run", s.base)
	}
	return nil
}

// verifyCounts verifies what p counts.
func (p *pageHeap) verifyCounts(n *tally) error {
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

func (l *list) contains(s *pspan) bool {
	for at := l.head; at != 0; at = pspanPtr(at).next {
		if at == s.addr() {
			return true
		}
	}
	return false
}

func (l *list) length() (n int) {
	for at := l.head; at != 0; at = pspanPtr(at).next {
		n++
	}
	return n
}
