// Page map: two tables from a page to its run.
//
// Each table has a word for each page. The table pages holds spans:
//
//	each page of a run of blocks         its span
//	first page of a large block          its span
//	first and last page of a free run    its span
//	any other page                       nil
//
// The pages inside free runs and large blocks have no word to write, so taking and
// freeing one costs the same at any length.
//
// The table pageWords holds a page word for each page of a block run, chosen by the layer above.
// Other pages have page word 0.
//
// # Readers without a lock
//
// The layer above reads both tables without a lock. The page heap writes a page's words under
// mu. It writes the words of a run in use only while no block of the run is live. So a caller
// with a live block reads stable words: their publication happened before the block was handed
// out, by a lock of either layer.
//
// Only misuse, such as a double free, reads words while they change:
//
//   - A page word is one atomic word, so it is whole or absent.
//   - A span that was read before unpublish cleared the word may describe another run by now.
//     Detection is best effort then.
//   - Free and Resize claim a large block first: see Span.Claim. The layer above does so
//     without mu.
//
// # Charges for the memory of the page map
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

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

const pageWordBytes = 8

// PageWord returns the page word of the page at off, an offset into r.
func (r *region) PageWord(off uintptr) *uint64 {
	return (*uint64)(vm.NonNil(r.pageWords + off>>PageShift*pageWordBytes))
}

// setPages sets the word in pages of each page of s.
func (s *Span) setPages(to *Span) {
	r := Addresses.RegionOf(s.Base)
	for at := s.Base; at < s.End(); at += PageBytes {
		*r.page(at) = to
	}
}

// setPageWords sets the page word of page i of s to first + i*step. It is a no-op if the region
// has none.
func (s *Span) setPageWords(first, step uint64) {
	r := Addresses.RegionOf(s.Base)
	if r.pageWords == 0 {
		return
	}
	for i := range s.pages {
		atomic.StoreUint64(r.PageWord(s.Base-r.Base+i*PageBytes), first+uint64(i)*step)
	}
}

// publishLarge makes a taken run a large block and sets the word of its first page. mu is held.
func (p *Heap) publishLarge(s *Span, size uintptr, align uint8) {
	s.reset(LargeRun)
	s.Size, s.align = size, align
	*Addresses.RegionOf(s.Base).page(s.Base) = s
	p.large.Blocks++
	p.large.Bytes += s.Bytes()
}

// PublishBlocks makes a taken run a block run and sets the words of all its pages. The page
// word of page i is first + i*step; if first is 0, there are none. No block of the run has been
// handed out yet.
func (p *Heap) PublishBlocks(s *Span, first, step uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Kind = BlockRun
	if first != 0 {
		s.setPageWords(first, step)
	}
	s.setPages(s)
}

// unpublish removes a run in use from the page map. All its blocks are free. It does not change
// the span, since readers may still hold it. mu is held.
func (p *Heap) unpublish(s *Span) {
	switch s.Kind {
	case LargeRun:
		p.large.Blocks--
		p.large.Bytes -= s.Bytes()
		*Addresses.RegionOf(s.Base).page(s.Base) = nil
	case BlockRun:
		s.setPageWords(0, 0)
		s.setPages(nil)
	}
}

// Look calls f under mu with the span in the word of addr's page. It returns the end of that
// run. If the word is nil, it calls nothing and returns the next page.
func (p *Heap) Look(addr uintptr, f func(s *Span)) (next uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := SpanAt(addr)
	if s == nil {
		return addr + PageBytes
	}
	f(s)
	return s.End()
}

// LookAround calls f under mu with the span of the run that contains addr, or nil.
func (p *Heap) LookAround(addr uintptr, f func(s *Span)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(Addresses.RegionOf(addr).spanAround(addr))
}

// spanAround returns the span of the run that contains addr, or nil. Pages inside a large block
// or a free run have no word, so it searches the pages in front one by one.
//
// Precondition: mu of addr's heap is held, or addr is in a live block of the caller.
func (r *region) spanAround(addr uintptr) *Span {
	owner := atomic.LoadUint32(r.Owner(addr))
	for at := addr; at-r.Base < r.used.Load() && atomic.LoadUint32(r.Owner(at)) == owner; at -= PageBytes {
		if s := *r.page(at); s != nil {
			if addr >= s.Base && addr < s.End() {
				return s
			}
			return nil
		}
	}
	return nil
}

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
	from, to := r.Base+vm.RoundUp(first+1, unit), r.Base+last&^(unit-1)
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
