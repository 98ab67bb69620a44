// Page map: what Free needs to know of a page of blocks, in one word.
//
//	63                      22 21  16 15    8 7     0
//	| address of the statuses    | page | map ID | class |
//
// page is the page's index in its span, so the entry alone turns an address into a
// block's index and the address of its status. Free reads only the entry, never
// the span. Pages that hold no small blocks have entry 0.
//
// A second table, pages, maps each page to its span: see pageheap.go.

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

	noMapID = 1<<(mapPageShift-mapHeapShift) - 1 // no heap's number, nor is 0

	// Statuses begin at multiples of an object's unit, 2^statusShift: the bits
	// below are not in the page map entry.
	statusShift = 6
)

// mapIDs gives the open heaps numbers for their page map entries. If there are more
// heaps than numbers, the others have none, and their Free takes the slow path.
var mapIDs struct {
	mu   sync.Mutex
	used [noMapID]bool
}

// takeMapID returns a number that no open heap has, shifted to its position in an
// entry, or that of noMapID.
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

// setPages makes to the entry of each page of s.
func (s *span) setPages(to *span) {
	r := addresses.regionOf(s.base)
	for at := s.base; at < s.end(); at += pageBytes {
		*r.page(at) = to
	}
}

// setMapEntries enters the pages of a span of blocks, if its region has entries.
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

// clearMapEntries removes the entries of a span's pages.
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
// its class. It returns 0 if there is no such block or it is another heap's.
func lookUp(addr uintptr, mapID uint64) (at uintptr, class uint8) {
	r := &addresses.first
	if !r.holds(addr) {
		return 0, 0
	}
	off := addr - r.base
	word := atomic.LoadUint64(r.mapEntry(off)) ^ mapID
	class = uint8(word)
	in := off&(pageBytes-1) | uintptr(word&mapPageMask)>>(mapPageShift-pageShift)
	recip := reciprocals[class]
	product := uint64(in) * uint64(recip)
	if word&mapHeapMask != 0 || uint32(product) >= recip {
		return 0, 0
	}
	return uintptr(word>>mapStatusShift<<statusShift) + uintptr(product>>32)*statusBytes, class
}

const statusBytes = unsafe.Sizeof(uint16(0))
