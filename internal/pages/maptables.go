// Map tables: the charges for the memory of the page map.
//
// A page's words in the page map take memory once they are written. A heap is charged
// for them by units of SegmentBytes, called segments here:
//
//	not charged --a run begins or ends there--> charged
//	     ^                                         |
//	     +--purge, if it is inside a free run -----+
//
// Only the first and the last page of a free run or a large block have words. A span
// of blocks has words for all pages, but is shorter than a segment. So no other
// segment's words are written.
//
// Invariant: the segments of the first and the last page of a run are charged.

package pages

import "github.com/freehold-go/freehold/internal/vm"

const (
	tableBytes = SegmentBytes / PageBytes * (WordBytes + pageWordBytes) // a segment's words
	heldBytes  = SegmentBytes/PageBytes/8 + ownerBytes + 1              // its part of the other tables, until Close
	ownerBytes = 4
)

// charged returns the byte of the segment that holds addr: 1 if a heap is charged for
// its words, else 0. The mu of the segment's heap guards it.
func (r *region) charged(addr uintptr) *byte {
	return (*byte)(vm.Pointer(r.charges + (addr-r.Base)/SegmentBytes))
}

// tableCost returns the charge for writing the words of the pages at addrs, which
// ascend. The caller charges it, and calls noteTables once nothing can fail any more.
func (r *region) tableCost(addrs ...uintptr) (cost uintptr) {
	last := ^uintptr(0)
	for _, addr := range addrs {
		segment := (addr - r.Base) / SegmentBytes
		if segment != last && *r.charged(addr) == 0 {
			cost += tableBytes
		}
		last = segment
	}
	return cost
}

// noteTables marks the segments of addrs as charged. cost is their tableCost. mu is held.
func (p *Heap) noteTables(r *region, cost uintptr, addrs ...uintptr) {
	if cost == 0 {
		return // all are charged already
	}
	for _, addr := range addrs {
		*r.charged(addr) = 1
	}
	p.tables += cost
}

// dropTables gives back the memory of the words inside s, a free run. The words are 0 before
// and after, so lock-free readers see no change. mu is held.
func (p *Heap) dropTables(s *Span) {
	if !vm.HolesReadZero {
		return
	}
	// The words of unit bytes fill whole system pages in both tables.
	unit := max(SegmentBytes, vm.PageBytes()/min(WordBytes, pageWordBytes)*PageBytes)
	r := Addresses.RegionOf(s.Base)
	// The words of the first and the last page are in use.
	first, last := s.Base-r.Base, s.End()-PageBytes-r.Base
	from, to := r.Base+RoundUp(first+1, unit), r.Base+last&^(unit-1)
	for at := from; at < to; at += SegmentBytes {
		if *r.charged(at) == 0 {
			continue
		}
		base := r.Base + (at-r.Base)&^(unit-1)
		for at = base + unit; at < to && *r.charged(at) != 0; at += unit {
		}
		p.dropWords(r, base, at-base)
		at -= SegmentBytes
	}
}

// dropWords gives back the memory of the words of [at, at+size), whole segments. mu is
// held.
func (p *Heap) dropWords(r *region, at, size uintptr) {
	n := size / PageBytes
	if _, _, err := Decommit(r.pages+r.pageIndex(at)*WordBytes, n*WordBytes); err != nil {
		return
	}
	if r.pageWords != 0 {
		if _, _, err := Decommit(r.pageWords+r.pageIndex(at)*pageWordBytes, n*pageWordBytes); err != nil {
			return
		}
	}
	for end := at + size; at < end; at += SegmentBytes {
		if c := r.charged(at); *c != 0 {
			*c = 0
			p.tables -= tableBytes
			p.uncharge(tableBytes)
		}
	}
}
