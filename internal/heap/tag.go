// Tags: what Free needs to know of a page of blocks, in one word.
//
//	63                      22 21  16 15    8 7     0
//	| address of the states    | page | holder | class |
//
// page is the page's place in its span, so that the word alone turns an address
// into a block's index and the place of its state. The word of any other page
// is 0. The tag itself is the first word of it that Free reads, and the span is
// not read at all.

package heap

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	tagHolderShift = 8
	tagPageShift   = 16
	tagStatesShift = 22

	tagHolderMask = 1<<tagPageShift - 1<<tagHolderShift
	tagPageMask   = 1<<tagStatesShift - 1<<tagPageShift
	tagBytes      = 8

	nobody = 1<<(tagPageShift-tagHolderShift) - 1 // no heap's number, nor is 0

	// States begin at multiples of an object's unit, 2^statesShift: the bits
	// below are not in the tag.
	statesShift = 6
)

// holders gives the heaps that are open numbers for their tags. Where there are
// more heaps than numbers the others have none: their Free takes the slow path.
var holders struct {
	mu   sync.Mutex
	used [nobody]bool
}

// takeHolder returns a number that no open heap has, shifted to its place; that
// of nobody if there is none.
func takeHolder() uint64 {
	holders.mu.Lock()
	defer holders.mu.Unlock()
	for i := 1; i < nobody; i++ {
		if !holders.used[i] {
			holders.used[i] = true
			return uint64(i) << tagHolderShift
		}
	}
	return nobody << tagHolderShift
}

func giveHolder(holder uint64) {
	if i := holder >> tagHolderShift; i != nobody {
		holders.mu.Lock()
		defer holders.mu.Unlock()
		holders.used[i] = false
	}
}

// tag returns where the tag of the page at off, an offset into r, stands.
func (r *region) tag(off uintptr) *uint64 {
	return (*uint64)(vm.Pointer(r.tags + off>>pageShift*tagBytes))
}

// setPages makes to the entry of each page of s.
func (s *span) setPages(to *span) {
	r := addresses.regionOf(s.base)
	for at := s.base; at < s.end(); at += pageBytes {
		*r.page(at) = to
	}
}

// setTags makes the tags of a span of blocks, where its region has tags.
func (s *span) setTags(holder uint64) {
	r := addresses.regionOf(s.base)
	at := uint64(s.states) >> statesShift
	if r.tags == 0 || holder>>tagHolderShift == nobody || at>>(64-tagStatesShift) != 0 {
		return
	}
	word := at<<tagStatesShift | holder | uint64(s.class)
	for i := range s.pages {
		atomic.StoreUint64(r.tag(s.base-r.base+i*pageBytes), word|uint64(i)<<tagPageShift)
	}
}

// clearTags makes the tags of a span's pages those of no span.
func (s *span) clearTags() {
	r := addresses.regionOf(s.base)
	if r.tags == 0 {
		return
	}
	for i := range s.pages {
		atomic.StoreUint64(r.tag(s.base-r.base+i*pageBytes), 0)
	}
}

// stateAt returns where the state of the block that begins at addr stands, if
// its tag says that there is one and names the holder; otherwise 0.
func stateAt(addr uintptr, holder uint64) (place uintptr, class uint8) {
	r := &addresses.first
	if !r.holds(addr) {
		return 0, 0
	}
	off := addr - r.base
	word := atomic.LoadUint64(r.tag(off)) ^ holder
	class = uint8(word)
	in := off&(pageBytes-1) | uintptr(word&tagPageMask)>>(tagPageShift-pageShift)
	recip := reciprocals[class]
	product := uint64(in) * uint64(recip)
	if word&tagHolderMask != 0 || uint32(product) >= recip {
		return 0, 0
	}
	return uintptr(word>>tagStatesShift<<statesShift) + uintptr(product>>32)*stateBytes, class
}

const stateBytes = unsafe.Sizeof(uint16(0))
