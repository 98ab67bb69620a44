// Look-up: from the address of a small block to its status.
//
// The map entry of a page of small blocks, a word of the page map, has what Free needs to know:
//
//	63                      22 21  16 15    8 7     0
//	| address of the statuses    | page | map ID | class |
//
// page is the page's index in its span, so the entry alone turns an address into a
// block's index and the address of its status. Free reads only the entry, never
// the span. Pages without small blocks have entry 0.
//
// Entries are read without a lock; see pagemap.go of package pages. Only misuse reads an
// entry while it changes. It must not find a live block:
//
//   - Before grow publishes an entry, the span's statuses exist and say that each block
//     is free.
//   - Before release has an entry cleared, bury has set the statuses to inLimbo. A reader
//     that loaded the entry earlier finds no live block. It holds a slot of the caches,
//     and a drain waits for it before the statuses are freed.

package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
)

const (
	mapHeapShift   = 8
	mapPageShift   = 16
	mapStatusShift = 22

	mapHeapMask = 1<<mapPageShift - 1<<mapHeapShift
	mapPageMask = 1<<mapStatusShift - 1<<mapPageShift

	noMapID = 1<<(mapPageShift-mapHeapShift) - 1 // like 0, the number of no heap

	// Statuses begin at multiples of ObjectUnit, which is 1<<statusShift. An entry
	// leaves the bits below out.
	statusShift = 6
)

// mapIDs assigns numbers to the open heaps, for their entries. Further heaps get
// noMapID: they write no entries, and their Free takes the slow path.
var mapIDs struct {
	mu   lockrank.Mutex[lockrank.Leaf]
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

// mapEntry returns the entry of the first page of a span of blocks. It is 0 if the heap has
// no number, or the statuses an address of more than 48 bits: Free then takes the slow path.
func (s *span) mapEntry(mapID uint64) uint64 {
	at := uint64(s.statuses) >> statusShift
	if mapID>>mapHeapShift == noMapID || at>>(64-mapStatusShift) != 0 {
		return 0
	}
	return at<<mapStatusShift | mapID | uint64(s.class)
}

// pageWord returns the entry of addr's page, less the heap's number, and the offset of addr in
// the page. It reports false if the page is not the heap's.
func pageWord(addr uintptr, mapID uint64) (word uint64, off uintptr, ok bool) {
	r := &pages.Addresses.First
	if !r.Holds(addr) {
		return 0, 0, false
	}
	off = addr - r.Base
	word = atomic.LoadUint64(r.MapEntry(off)) ^ mapID
	return word, off & (pages.PageBytes - 1), word&mapHeapMask == 0
}

// statusIn returns the address of the status of the block that begins at an address, and its
// class, from what pageWord returns for it. It reports false if no block begins there. The
// block may be free. The caller holds a slot of the caches.
func statusIn(word uint64, off uintptr) (at uintptr, class uint8, ok bool) {
	class = uint8(word)
	// in is the offset into the span. See reciprocals for the division.
	in := off | uintptr(word&mapPageMask)>>(mapPageShift-pages.PageShift)
	recip := reciprocals[class]
	product := uint64(in) * uint64(recip)
	at = uintptr(word>>mapStatusShift<<statusShift) + uintptr(product>>32)*statusBytes
	return at, class, uint32(product) < recip
}

const statusBytes = unsafe.Sizeof(uint16(0))
