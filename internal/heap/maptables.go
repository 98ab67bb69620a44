// Map tables: what the tables of the address space cost, and which heap pays.
//
// The words of a page take memory once they are written. A heap is charged for them
// by the segment: from when a run first begins or ends there until a purge finds
// the segment inside a free run and gives their memory back. Spans of blocks,
// which have words for every page, are shorter than a segment.
//
// Invariant: the segments of the first and the last page of a run are charged.

package heap

import "github.com/freehold-go/freehold/internal/vm"

const (
	tableBytes = segmentBytes / pageBytes * (wordBytes + mapEntryBytes) // of a segment's words, in both tables
	heldBytes  = segmentBytes/pageBytes/8 + ownerBytes + 1              // of its other tables, which stay
	ownerBytes = 4
)

// charged returns the byte that says whether a heap is charged for the words of
// the segment that holds addr.
func (r *region) charged(addr uintptr) *byte {
	return (*byte)(vm.Pointer(r.charges + (addr-r.base)/segmentBytes))
}

// tableCost returns what runs that begin or end at the pages at addrs, in order,
// would have charged.
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

// noteTables marks what was charged by tableCost.
func (p *pageHeap) noteTables(r *region, cost uintptr, addrs ...uintptr) {
	for _, addr := range addrs {
		*r.charged(addr) = 1
	}
	p.tables += cost
}

// dropTables gives back the words inside s, a free run: they are 0, and read so
// without memory. mu is held.
func (p *pageHeap) dropTables(s *span) {
	if !vm.HolesReadZero {
		return
	}
	// As many pages as fill a system page with words, and with page map entries.
	unit := max(segmentBytes, vm.PageBytes()/min(wordBytes, mapEntryBytes)*pageBytes)
	r := addresses.regionOf(s.base)
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

// dropWords gives back the words of whole segments.
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
