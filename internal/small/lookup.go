// Look-up: from the address of a small block to its status.
//
// The map entry of a page, a word of the page map, holds all that Free needs, so Free never reads
// the span:
//
//	63                      22 21  16 15    8 7     0
//	| address of the statuses    | page | map ID | class |
//
// page is the page's index in its span. With it the entry turns an address into the index of a
// block and the address of its status. Pages without small blocks have entry 0.
//
// Entries are read without a lock; see pagemap.go of package pages. Only misuse reads an entry
// while it changes, and then it must not find a live block:
//
//   - grow publishes an entry after the span's statuses say that each block is free.
//   - release has an entry cleared after bury has set the statuses to InLimbo. A reader that
//     loaded the entry earlier finds no live block. It holds a slot of the caches, and a drain
//     waits for it before the statuses are freed.

package small

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
)

const (
	mapHeapShift   = 8
	MapPageShift   = 16
	MapStatusShift = 22

	MapHeapMask = 1<<MapPageShift - 1<<mapHeapShift
	MapPageMask = 1<<MapStatusShift - 1<<MapPageShift

	noMapID = 1<<(MapPageShift-mapHeapShift) - 1 // like 0, the number of no heap

	// Statuses begin at multiples of ObjectUnit, which is 1<<StatusShift. An entry leaves the
	// bits below out.
	StatusShift = 6
)

// mapIDs assigns numbers to the open heaps, for their entries. Further heaps get noMapID: they
// write no entries, and their Free takes the slow path.
var mapIDs struct {
	mu   lockrank.Mutex[lockrank.Leaf]
	used [noMapID]bool
}

// newMapID returns a number that no open heap has, or noMapID, shifted to its position in an
// entry.
func newMapID() uint64 {
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

func releaseMapID(mapID uint64) {
	if i := mapID >> mapHeapShift; i != noMapID {
		mapIDs.mu.Lock()
		defer mapIDs.mu.Unlock()
		mapIDs.used[i] = false
	}
}

// mapEntry returns the entry of the first page of a span. It returns 0 if the heap has no number or
// the address of the statuses has more than 48 bits: Free then takes the slow path.
func (s *Span) mapEntry(mapID uint64) uint64 {
	at := uint64(s.statuses) >> StatusShift
	if mapID>>mapHeapShift == noMapID || at>>(64-MapStatusShift) != 0 {
		return 0
	}
	return at<<MapStatusShift | mapID | uint64(s.class)
}

// PageWord returns the map entry of addr's page without the map ID, and the offset of addr in the
// page. It reports false if the page is not of the heap with that map ID.
func PageWord(addr uintptr, mapID uint64) (word uint64, off uintptr, ok bool) {
	r := &pages.Addresses.First
	if !r.Holds(addr) {
		return 0, 0, false
	}
	off = addr - r.Base
	word = atomic.LoadUint64(r.MapEntry(off)) ^ mapID
	return word, off & (pages.PageBytes - 1), word&MapHeapMask == 0
}

// StatusIn returns the address of the status of the block that begins at an address, and its class.
// word and off are from PageWord. It reports false if no block begins there. The block may be free.
// The caller holds a slot of the caches.
func StatusIn(word uint64, off uintptr) (at uintptr, class uint8, ok bool) {
	class = uint8(word)
	// in is the offset into the span. See reciprocals for the division.
	in := off | uintptr(word&MapPageMask)>>(MapPageShift-pages.PageShift)
	recip := reciprocals[class]
	product := uint64(in) * uint64(recip)
	at = uintptr(word>>MapStatusShift<<StatusShift) + uintptr(product>>32)*statusBytes
	return at, class, uint32(product) < recip
}
