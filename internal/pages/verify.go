// Verify: a check of the invariants of a page heap.
//
// Only tests call it, so the linker leaves it out of other programs.

package pages

import (
	"fmt"
	"maps"
	"slices"

	"github.com/freehold-go/freehold/internal/vm"
)

// Tally is the result of a walk over the runs of a heap.
type Tally struct {
	dirty    uintptr // pages that hold memory
	free     uintptr // pages of free runs that hold memory
	oversize uintptr // the part of free in oversize runs
	tables   uintptr // bytes
	total    uintptr // bytes
	large    LargeCount
	metadata map[uintptr]uintptr // objects by size
}

// Object counts an object of metadata of the given size.
func (n *Tally) Object(size uintptr) {
	if n.metadata == nil {
		n.metadata = map[uintptr]uintptr{}
	}
	n.metadata[vm.RoundUp(size, ObjectUnit)]++
}

// Verify verifies the invariants of p. It calls above for large blocks and for runs of the layer
// above, with the number of their pages that hold memory. n holds the layer above's objects of
// metadata, except for objects that above adds. No run may begin in gap. Scavenging is held, and
// no other goroutine uses the heap.
func (p *Heap) Verify(n *Tally, gap Range, above func(s *Span, dirty uintptr) error) error {
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
func (p *Heap) verifySegment(n *Tally, segment, gap Range, above func(s *Span, dirty uintptr) error) error {
	r := Addresses.RegionOf(segment.Base)
	end := segment.Base + segment.Size
	n.total += segment.Size
	for at := segment.Base; at < end; at += SegmentBytes {
		n.tables += heldBytes + uintptr(*r.charged(at))*tableBytes
	}
	for at := segment.Base; at < end; {
		s := *r.page(at)
		if s == nil && gap.Size > 0 && at == gap.Base {
			at += gap.Size
			continue
		}
		if s == nil {
			return fmt.Errorf("page %#x: no run begins here", at)
		}
		if s.Base != at || s.pages == 0 || s.End() > end || s.Owner != p.ID {
			return fmt.Errorf("page %#x: span %+v does not fit", at, *s)
		}
		if err := p.verifyRun(n, r, s, above); err != nil {
			return err
		}
		at = s.End()
	}
	return nil
}

// verifyRun verifies one run.
func (p *Heap) verifyRun(n *Tally, r *region, s *Span, above func(s *Span, dirty uintptr) error) error {
	n.Object(SpanBytes)
	if r.tableCost(s.Base, s.End()-PageBytes) != 0 {
		return fmt.Errorf("run %#x: its words are not charged", s.Base)
	}
	for in := s.Base + PageBytes; in < s.End(); in += PageBytes {
		want := (*Span)(nil)
		if s.Kind == BlockRun || s.Kind == GuardRun || s.Kind == FreeRun && in == s.End()-PageBytes {
			want = s
		}
		if *r.page(in) != want {
			return fmt.Errorf("page %#x inside run %#x of kind %d: word %p", in, s.Base, s.Kind, *r.page(in))
		}
	}
	dirty := r.dirty.Count(r.pageIndex(s.Base), s.pages)
	n.dirty += dirty
	if s.Kind != FreeRun && s.Kind != GuardRun && dirty != s.pages {
		return fmt.Errorf("run %#x of kind %d: %d of %d pages are dirty", s.Base, s.Kind, dirty, s.pages)
	}
	switch s.Kind {
	case FreeRun:
		if !p.free.lists[bin(s.pages)].Contains(s) {
			return fmt.Errorf("free run %#x of %d pages is not on its bin", s.Base, s.pages)
		}
		n.free += dirty
		if dirty >= oversizePages {
			n.oversize += dirty
		}
		return p.verifyFree(r, s)
	case LargeRun:
		n.large.Blocks++
		n.large.Bytes += s.Bytes()
		return above(s, dirty)
	case BlockRun, GuardRun:
		return above(s, dirty)
	}
	return nil
}

// verifyFree verifies a free run and that its neighbours are not free. mu is held.
func (p *Heap) verifyFree(r *region, s *Span) error {
	dirty := r.dirty.Count(r.pageIndex(s.Base), s.pages)
	if s.Kind != FreeRun || s.Owner != p.ID || s.dirty != dirty {
		return fmt.Errorf("%d pages hold memory in free run %+v", dirty, *s)
	}
	if p.freeNeighbour(r, s.Base-PageBytes) != nil || p.freeNeighbour(r, s.End()) != nil {
		return fmt.Errorf("free run %#x is next to a free run", s.Base)
	}
	return nil
}

// verifyCounts compares p's counters with the tally.
func (p *Heap) verifyCounts(n *Tally) error {
	if want := n.dirty*PageBytes + p.tables + p.metadata.bytes; p.committed != want {
		return fmt.Errorf("committed is %d, want %d", p.committed, want)
	}
	if p.MaxBytes > 0 && p.committed > p.MaxBytes {
		return fmt.Errorf("committed is %d, above the limit of %d", p.committed, p.MaxBytes)
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
			slabs += SlabBytes
		}
	}
	if slabs > p.metadata.bytes {
		return fmt.Errorf("%d bytes in slabs with room, %d in all", slabs, p.metadata.bytes)
	}
	return nil
}

// objects returns the number of live objects by size.
func (m *metadata) objects() map[uintptr]uintptr {
	n := map[uintptr]uintptr{}
	for _, segment := range m.segments {
		for at := segment; at < segment+metadataSegmentBytes; at += SlabBytes {
			if slices.Contains(m.unused, at) {
				continue
			}
			if s := slabAt(at); s.live > 0 {
				n[s.Size] += s.live
			}
		}
	}
	return n
}

func (l *List) Contains(s *Span) bool {
	for at := l.Head; at != 0; at = SpanPtr(at).Next {
		if at == s.Addr() {
			return true
		}
	}
	return false
}

func (l *List) Length() (n int) {
	for at := l.Head; at != 0; at = SpanPtr(at).Next {
		n++
	}
	return n
}
