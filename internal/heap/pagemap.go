// Page map: from an address to its run.
//
// Two tables have a word for each page. pages has the span:
//
//	each page of a run of blocks         its span
//	first page of a large block          its span
//	first and last page of a free run    its span
//	any other page                       nil
//
// The pages inside free runs and large blocks have no word to write, so taking and
// freeing one costs the same at any length.
//
// entries has what the layer above needs to know of a page of its blocks, in one word that
// it has chosen. Other pages have entry 0.
//
// # Readers without a lock
//
// The layer above reads both tables without a lock. The words of a page are written
// under the page heap's mu, and for a run in use only while none of its blocks is
// live. A caller with a live block therefore reads stable words: publishing them
// happened before the block was handed out, by a lock of the layer above or the page heap's.
//
// Only misuse, such as a double free, reads words while they change:
//
//   - An entry is one atomic word, so it is whole or absent.
//   - A span that was read before unpublish cleared the word may describe another
//     run by now. Detection is best effort then.
//   - Large blocks are freed under mu, where their span is checked again.

package heap

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

const mapEntryBytes = 8

// mapEntry returns the entry of the page at off, an offset into r.
func (r *region) mapEntry(off uintptr) *uint64 {
	return (*uint64)(vm.Pointer(r.mapEntries + off>>pageShift*mapEntryBytes))
}

// setPages sets the word in pages of each page of s.
func (s *pspan) setPages(to *pspan) {
	r := addresses.regionOf(s.base)
	for at := s.base; at < s.end(); at += pageBytes {
		*r.page(at) = to
	}
}

// setMapEntries sets the entry of page i of s to first + i*step. It is a no-op if the region
// has no entries.
func (s *pspan) setMapEntries(first, step uint64) {
	r := addresses.regionOf(s.base)
	if r.mapEntries == 0 {
		return
	}
	for i := range s.pages {
		atomic.StoreUint64(r.mapEntry(s.base-r.base+i*pageBytes), first+uint64(i)*step)
	}
}

// publishLarge makes a run just taken a large block, and sets the word of its first
// page. mu is held.
func (p *pageHeap) publishLarge(s *pspan, size uintptr, align uint8) {
	s.reset(largeRun)
	s.size, s.align = size, align
	*addresses.regionOf(s.base).page(s.base) = s
	p.large.blocks++
	p.large.bytes += s.bytes()
}

// publishBlocks makes a run just taken a run of blocks of the layer above, and sets the
// words of all its pages: the entry of page i is first + i*step. No block of the run has been
// handed out.
func (p *pageHeap) publishBlocks(s *pspan, first, step uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.kind = blockRun
	if first != 0 {
		s.setMapEntries(first, step)
	}
	s.setPages(s)
}

// unpublish removes a run in use from the page map. Its blocks are free. The span is
// unchanged, as readers may still have it. mu is held.
func (p *pageHeap) unpublish(s *pspan) {
	switch s.kind {
	case largeRun:
		p.large.blocks--
		p.large.bytes -= s.bytes()
		*addresses.regionOf(s.base).page(s.base) = nil
	case blockRun:
		s.setMapEntries(0, 0)
		s.setPages(nil)
	}
}

// look calls f, with mu held, with the span in the word of addr's page, if there is one. It
// returns where the next run begins; inside large blocks and free runs, where there is no
// word, the next page.
func (p *pageHeap) look(addr uintptr, f func(s *pspan)) (next uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := pspanAt(addr)
	if s == nil {
		return addr + pageBytes
	}
	f(s)
	return s.end()
}

// lookAround calls f, with mu held, with the span of the run that contains addr, or nil.
func (p *pageHeap) lookAround(addr uintptr, f func(s *pspan)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(addresses.regionOf(addr).spanAround(addr))
}

// spanAround returns the span of the run that contains addr, or nil. A page inside a
// large block or a free run has no word, so it visits the pages in front one by one.
//
// Precondition: the mu of addr's heap is held, or addr is in a live block of the caller.
func (r *region) spanAround(addr uintptr) *pspan {
	owner := atomic.LoadUint32(r.owner(addr))
	for at := addr; at-r.base < r.used.Load() && atomic.LoadUint32(r.owner(at)) == owner; at -= pageBytes {
		if s := *r.page(at); s != nil {
			if addr >= s.base && addr < s.end() {
				return s
			}
			return nil
		}
	}
	return nil
}
