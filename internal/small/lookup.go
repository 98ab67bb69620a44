// Look-up: from the address of a small block to its status.
//
// The map entry of a page, a word of the page map, holds all that Free needs, so Free never reads
// the span:
//
//	63                      22 21  16 15    8 7     0
//	| address of the statuses    | page | map ID | class |
//
// page is the page's index in its span. An address and its map entry give the index of the block
// and the address of its status. The map entry of a page without small blocks is 0.
//
// Map entries are read without a lock: see pagemap.go of package pages. A Free of a live block
// reads a stable entry. Only a wrong Free may read one while it changes, and it must find no live
// block:
//
//   - grow publishes a map entry after it has set all statuses of the span to free.
//   - release clears a map entry after bury has set the statuses to InLimbo. So a reader that
//     loaded the map entry earlier finds no live block. The reader holds a slot, and a drain waits
//     for every slot before it frees the statuses.

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

	noMapID = 1<<(MapPageShift-mapHeapShift) - 1 // of a heap that writes no map entries

	// Statuses begin at multiples of ObjectUnit, which is 1<<StatusShift. A map entry leaves out
	// their lowest bits, which are 0.
	StatusShift = 6
)

// mapIDs assigns numbers to open heaps, for their map entries. If all numbers are taken, a heap
// gets noMapID: it writes no map entries, and its Free takes the slow path.
var mapIDs struct {
	mu   lockrank.Mutex[lockrank.Leaf]
	used [noMapID]bool
}

// newMapID returns a number that no open heap has, or noMapID. The number is shifted to its
// position in a map entry.
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

// mapEntry returns the map entry of the first page of a span. If the heap has no number, or the
// address of the statuses has more than 48 bits, it returns 0, and Free takes the slow path.
func (s *Span) mapEntry(mapID uint64) uint64 {
	at := uint64(s.statuses) >> StatusShift
	if mapID>>mapHeapShift == noMapID || at>>(64-MapStatusShift) != 0 {
		return 0
	}
	return at<<MapStatusShift | mapID | uint64(s.class)
}

// PageWord returns the map entry of addr's page with its map ID cleared, and the offset of addr in
// the page. It reports false if the page has no small blocks of the heap with that map ID.
func PageWord(addr uintptr, mapID uint64) (word uint64, off uintptr, ok bool) {
	r := &pages.Addresses.First
	if !r.Holds(addr) {
		return 0, 0, false
	}
	off = addr - r.Base
	word = atomic.LoadUint64(r.MapEntry(off)) ^ mapID
	return word, off & (pages.PageBytes - 1), word&MapHeapMask == 0
}

// StatusIn finds the block that begins at the address that was passed to PageWord, which returned
// word and off. It returns the class of the block and the address of its status. It reports false
// if no block begins there. The block may be free. The caller holds a slot.
func StatusIn(word uint64, off uintptr) (at uintptr, class uint8, ok bool) {
	class = uint8(word)
	// in is the offset into the span. The product divides it by the block size: see reciprocals.
	in := off | uintptr(word&MapPageMask)>>(MapPageShift-pages.PageShift)
	recip := reciprocals[class]
	product := uint64(in) * uint64(recip)
	at = uintptr(word>>MapStatusShift<<StatusShift) + uintptr(product>>32)*statusBytes
	return at, class, uint32(product) < recip
}
