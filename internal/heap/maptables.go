// Map tables: the memory of the page map, and which heap is charged for it.
//
// A page's words in the page map take memory once they are written. A heap is charged
// for them by units of segmentBytes, called segments here:
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

package heap

import "github.com/freehold-go/freehold/internal/vm"

const (
	tableBytes = segmentBytes / pageBytes * (wordBytes + mapEntryBytes) // of a segment's words in both tables
	heldBytes  = segmentBytes/pageBytes/8 + ownerBytes + 1              // of its part of the other tables, charged until Close
	ownerBytes = 4
)

// charged returns the byte of the segment that holds addr: 1 if a heap is charged for
// its words, else 0. The mu of the segment's heap guards it.
func (r *region) charged(addr uintptr) *byte {
	return (*byte)(vm.Pointer(r.charges + (addr-r.base)/segmentBytes))
}

// tableCost returns the charge for writing the words of the pages at addrs, which
// ascend. The caller charges it, and calls noteTables once nothing can fail any more.
func (r *region) tableCost(addrs ...uintptr) (cost uintptr) {
	last := ^uintptr(0)
	for _, addr := range addrs {
		segment := (addr - r.base) / segmentBytes
		if segment != last && *r.charged(addr) == 0 {
			cost += tableBytes
		}
		last = segment
	}
	return cost
}

// noteTables marks the segments of addrs as charged. cost is tableCost of addrs. mu is
// held.
func (p *pageHeap) noteTables(r *region, cost uintptr, addrs ...uintptr) {
	for _, addr := range addrs {
		*r.charged(addr) = 1
	}
	p.tables += cost
}

// dropTables gives back the memory of the words inside s, a free run. These words are
// 0 and read 0 afterwards: lock-free readers notice nothing. mu is held.
func (p *pageHeap) dropTables(s *pspan) {
	if !vm.HolesReadZero {
		return
	}
	// unit is the bytes whose words fill whole system pages in both tables.
	unit := max(segmentBytes, vm.PageBytes()/min(wordBytes, mapEntryBytes)*pageBytes)
	r := addresses.regionOf(s.base)
	// The words of the first and the last page are in use.
	first, last := s.base-r.base, s.end()-pageBytes-r.base
	from, to := r.base+roundUp(first+1, unit), r.base+last&^(unit-1)
	for at := from; at < to; at += segmentBytes {
		if *r.charged(at) == 0 {
			continue
		}
		base := r.base + (at-r.base)&^(unit-1)
		for at = base + unit; at < to && *r.charged(at) != 0; at += unit {
		}
		p.dropWords(r, base, at-base)
		at -= segmentBytes
	}
}

// dropWords gives back the memory of the words of [at, at+size), whole segments. mu is
// held.
func (p *pageHeap) dropWords(r *region, at, size uintptr) {
	n := size / pageBytes
	if _, _, err := decommit(r.pages+r.pageIndex(at)*wordBytes, n*wordBytes); err != nil {
		return
	}
	if r.mapEntries != 0 {
		if _, _, err := decommit(r.mapEntries+r.pageIndex(at)*mapEntryBytes, n*mapEntryBytes); err != nil {
			return
		}
	}
	for end := at + size; at < end; at += segmentBytes {
		if c := r.charged(at); *c != 0 {
			*c = 0
			p.tables -= tableBytes
			p.uncharge(tableBytes)
		}
	}
}
