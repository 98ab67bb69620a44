// Page map: from an address to its block.
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
// entries has what Free needs to know of a page of small blocks, in one word:
//
//	63                      22 21  16 15    8 7     0
//	| address of the statuses    | page | map ID | class |
//
// page is the page's index in its span, so the entry alone turns an address into a
// block's index and the address of its status. Free reads only the entry, never
// the span. Pages without small blocks have entry 0.
//
// # Readers without a lock
//
// Free and Resize read both tables without a lock. The words of a page are written
// under the page heap's mu, and for a run in use only while none of its blocks is
// live. A caller with a live block therefore reads stable words: publishing them
// happened before the block was handed out, by central's lock or the page heap's.
//
// Only misuse, such as a double free, reads words while they change. It must not
// find a live block:
//
//   - Before publishSpan writes an entry, the span's statuses exist and say that
//     each block is free. The entry is one atomic word, so it is whole or absent.
//   - Before unpublish clears an entry, central has set the statuses to inLimbo.
//     A reader that loaded the entry earlier finds no live block. It holds a slot of
//     the caches, and a drain waits for it before the statuses are freed.
//   - A span that was read before unpublish cleared the word may describe another
//     run by now. Detection is best effort then.
//   - Large blocks are freed under mu, where their span is checked again.

package heap

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	mapHeapShift   = 8
	mapPageShift   = 16
	mapStatusShift = 22

	mapHeapMask   = 1<<mapPageShift - 1<<mapHeapShift
	mapPageMask   = 1<<mapStatusShift - 1<<mapPageShift
	mapEntryBytes = 8

	noMapID = 1<<(mapPageShift-mapHeapShift) - 1 // like 0, the number of no heap

	// Statuses begin at multiples of objectUnit, which is 1<<statusShift. An entry
	// leaves the bits below out.
	statusShift = 6
)

// mapIDs assigns numbers to the open heaps, for their entries. Further heaps get
// noMapID: they write no entries, and their Free takes the slow path.
var mapIDs struct {
	mu   sync.Mutex
	used [noMapID]bool
}

// takeMapID returns a number that no open heap has, or noMapID, shifted to its
// position in an entry.
func takeMapID() uint64 {
	mapIDs.mu.Lock()
	defer mapIDs.mu.Unlock()
	for i := 1; i < noMapID; i++ {
		if !mapIDs.used[i] {
			mapIDs.used[i] = true
			return uint64(i) << mapHeapShift
		}
	}
	return noMapID << mapHeapShift
}

func giveMapID(mapID uint64) {
	if i := mapID >> mapHeapShift; i != noMapID {
		mapIDs.mu.Lock()
		defer mapIDs.mu.Unlock()
		mapIDs.used[i] = false
	}
}

// mapEntry returns the entry of the page at off, an offset into r.
func (r *region) mapEntry(off uintptr) *uint64 {
	return (*uint64)(vm.Pointer(r.mapEntries + off>>pageShift*mapEntryBytes))
}

// setPages sets the word in pages of each page of s.
func (s *span) setPages(to *span) {
	r := addresses.regionOf(s.base)
	for at := s.base; at < s.end(); at += pageBytes {
		*r.page(at) = to
	}
}

// setMapEntries sets the entry of each page of a span of blocks. It is a no-op if
// the region has no entries, the heap no number, or the statuses an address of more
// than 48 bits. Free then takes the slow path.
func (s *span) setMapEntries(mapID uint64) {
	r := addresses.regionOf(s.base)
	at := uint64(s.statuses) >> statusShift
	if r.mapEntries == 0 || mapID>>mapHeapShift == noMapID || at>>(64-mapStatusShift) != 0 {
		return
	}
	word := at<<mapStatusShift | mapID | uint64(s.class)
	for i := range s.pages {
		atomic.StoreUint64(r.mapEntry(s.base-r.base+i*pageBytes), word|uint64(i)<<mapPageShift)
	}
}

// clearMapEntries clears the entry of each page of a span.
func (s *span) clearMapEntries() {
	r := addresses.regionOf(s.base)
	if r.mapEntries == 0 {
		return
	}
	for i := range s.pages {
		atomic.StoreUint64(r.mapEntry(s.base-r.base+i*pageBytes), 0)
	}
}

// lookUp returns the address of the status of the block that begins at addr, and
// its class. It returns 0 if no block begins there or it is another heap's. The
// block may be free. The caller holds a slot of the caches.
func lookUp(addr uintptr, mapID uint64) (at uintptr, class uint8) {
	r := &addresses.first
	if !r.holds(addr) {
		return 0, 0
	}
	off := addr - r.base
	// The heap's bits of word are 0 if and only if the page is the heap's.
	word := atomic.LoadUint64(r.mapEntry(off)) ^ mapID
	class = uint8(word)
	// in is the offset into the span. See reciprocals for the division.
	in := off&(pageBytes-1) | uintptr(word&mapPageMask)>>(mapPageShift-pageShift)
	recip := reciprocals[class]
	product := uint64(in) * uint64(recip)
	if word&mapHeapMask != 0 || uint32(product) >= recip {
		return 0, 0
	}
	return uintptr(word>>mapStatusShift<<statusShift) + uintptr(product>>32)*statusBytes, class
}

const statusBytes = unsafe.Sizeof(uint16(0))

// publishLarge makes a run just taken a large block, and sets the word of its first
// page. mu is held.
func (p *pageHeap) publishLarge(s *span, size uintptr, align uint8) {
	s.reset(largeRun)
	s.size, s.align = size, align
	*addresses.regionOf(s.base).page(s.base) = s
	p.large.blocks++
	p.large.bytes += s.bytes()
}

// publishSpan makes a run just taken a run of blocks, and sets the words of all its
// pages. The caller has set class, size, statuses and free, and the statuses
// themselves. No block of the run has been handed out.
func (p *pageHeap) publishSpan(s *span, mapID uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.kind = blockRun
	s.setMapEntries(mapID)
	s.setPages(s)
}

// unpublish removes a run in use from the page map. Its blocks are free, and those
// of a run of blocks in limbo. The span is unchanged, as readers may still have it.
// mu is held.
func (p *pageHeap) unpublish(s *span) {
	switch s.kind {
	case largeRun:
		p.large.blocks--
		p.large.bytes -= s.bytes()
		*addresses.regionOf(s.base).page(s.base) = nil
	case blockRun:
		s.clearMapEntries()
		s.setPages(nil)
	}
}
