// Spans: runs of pages cut into equal blocks of one class.
//
// Each block has a status of two bytes, and a bit that is set while the block is free in its span.
// Statuses, bits and the span itself are metadata, where no overrun of a block reaches them:
//
//	pages    | page | page | page |     metadata   | span |
//	         | block 0 | block 1 | … |             | statuses[blocks+1] | free[words] |
//
// The status of a live block is its requested size. The statuses of free blocks are above all
// sizes. Free compares the status with the length of the slice, and this one comparison detects
// double frees and cut slices. The last status belongs to the waste at the end of the span. It never
// says live.
//
// A span is empty, partial or full:
//
//	empty --alloc--> partial --alloc--> full
//	  ^                |   ^              |
//	  +---last free----+   +-----free-----+
//
// Empty and partial spans are on the list of their class: see central.go.
//
// # Look-up: from the address of a block to its status
//
// The page word of a page, a word of the page map, holds all that Free needs, so Free never reads
// the span:
//
//	63                      22 21  16 15    8 7     0
//	| address of the statuses    | page | map ID | class |
//
// page is the page's index in its span. An address and its page word give the index of the block
// and the address of its status. The page word of a page without small blocks is 0.
//
// Page words are read without a lock: see pagemap.go of package pages. A Free of a live block reads
// a stable page word. Only a wrong Free may read one while it changes, and it must find no live
// block:
//
//   - grow publishes a page word after it has set all statuses of the span to free.
//   - release clears a page word after bury has set the statuses to InLimbo. So a reader that
//     loaded the page word earlier finds no live block. The reader holds a slot, and a drain waits
//     for every slot before it frees the statuses.

package small

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// Span describes a run of pages. The fields after pages.Span describe a block run. In other runs
// they are 0.
//
// Invariants of a block run:
//   - out + bits set in free == blocks
//   - a block is live, free in a magazine (cached) or free in the span; while it is free, its
//     status is FreeZero or FreeDirty, or InLimbo while punchSpan decommits its memory
//
// class and statuses do not change while the page map points to the span, because readers without a
// lock use them. central's mu guards the rest.
type Span struct {
	pages.Span
	base     uintptr      // Base of pages.Span again, for restoreTo
	statuses uintptr      // address of the statuses, [blocks+1]uint16
	free     pages.Bitmap // the blocks that are free in the span
	out      uint32       // blocks not free in the span: live or in a magazine
	holes    uint32       // its system pages given back, a bit each: see systemPages
	home     uint32       // see central.go
	class    uint8
	punched  bool // no block has returned since holes were made
}

const _ = pages.SpanBytes - unsafe.Sizeof(Span{}) // a Span fits

// Statuses of blocks. A live block has its size, at most MaxSize, or Watched.
const (
	Watched   = 0xfffc // live; package watch knows its size
	InLimbo   = 0xfffd // neither live nor free: see limbo.go and punchSpan
	FreeZero  = 0xfffe // free, never allocated, and its memory reads zero
	FreeDirty = 0xffff // free
)

// IsFree reports whether a block with the status is free.
func IsFree(status uint16) bool { return status >= FreeZero }

// StatusAt returns the status whose address is addr.
func StatusAt(addr uintptr) *uint16 { return (*uint16)(vm.NonNil(addr)) }

// Entry is a free block.
type Entry struct {
	Addr   uintptr
	Status uintptr // address of the block's status
}

// claim makes the block live with the given size if it is free. It returns the previous status.
func (e *Entry) claim(size int) (was uint16) {
	st := StatusAt(e.Status)
	if was = *st; was >= FreeZero {
		*st = uint16(size)
	}
	return was
}

const statusBytes = unsafe.Sizeof(uint16(0))

func spanPtr(addr uintptr) *Span { return (*Span)(vm.Pointer(addr)) }

// SpanOf returns s as a Span.
func SpanOf(s *pages.Span) *Span { return (*Span)(unsafe.Pointer(s)) }

// SpanAt returns the span of addr's page from the page map, or nil.
func SpanAt(addr uintptr) *Span { return SpanOf(pages.SpanAt(addr)) }

// Class returns the class of a block run.
func (s *Span) Class() uint8 { return s.class }

// IsBlock reports whether s is a block run of owner and has a live block of size bytes at addr.
// addr is in the run. IsBlock is false for a watched block.
func (s *Span) IsBlock(owner uint32, addr, size uintptr) bool {
	if s.Owner != owner || s.Kind != pages.BlockRun || size == 0 || size > MaxSize {
		return false
	}
	i := s.index(addr)
	return s.Base+i*s.Size == addr && uintptr(*StatusAt(s.statusOf(i))) == size
}

// Live returns the class and the entry of b, or class 0 if b is not exactly a live block of h. It
// reads the span only if the page has no page word. The caller holds a slot, so no drain frees the
// status meanwhile.
func (h *Heap) Live(b []byte) (class uint8, e Entry) {
	addr := AddrOf(b)
	// Close releases the map ID. The heap was open when PageWord had read the page word.
	if word, off, ok := PageWord(addr, h.mapID); ok && !h.pages.Closed.Load() {
		at, class, ok := StatusIn(word, off)
		if ok && len(b) <= MaxSize && int(*StatusAt(at)) == len(b) {
			return class, Entry{addr, at}
		}
		return 0, Entry{}
	}
	s := SpanAt(addr)
	if s == nil || !s.IsBlock(h.pages.ID, addr, uintptr(len(b))) {
		return 0, Entry{}
	}
	return s.class, s.entryOf(s.index(addr))
}

// LiveEntry is Live for a block of the class, whose entry it returns. If another goroutine has freed
// b by mistake since the caller found its class, a block of another class may be at b now.
func (h *Heap) LiveEntry(class uint8, b []byte) Entry {
	if of, e := h.Live(b); of == class {
		return e
	}
	return Entry{}
}

// freeEntry is LiveEntry, but also marks the block free.
func (h *Heap) freeEntry(class uint8, b []byte) Entry {
	e := h.LiveEntry(class, b)
	if e.Addr != 0 {
		*StatusAt(e.Status) = FreeDirty
	}
	return e
}

// Resize changes the size of b if that is a live block of h, and if the block is neither too small
// for size nor at least twice as large. The caller holds a slot.
func (h *Heap) Resize(b []byte, size int) (resized, live bool) {
	class, e := h.Live(b)
	if class == 0 {
		return false, false
	}
	whole := ClassSize(class)
	if size > whole || size <= whole/2 {
		return false, true
	}
	*StatusAt(e.Status) = uint16(size)
	return true, true
}

// holeBytes returns the bytes of the holes of s.
func (s *Span) holeBytes() int { return bits.OnesCount32(s.holes) * int(vm.PageBytes()) }

// systemPages returns the bits in Span.holes of the system pages that overlap [from, to), a part of
// s. A span has at most 32 system pages.
func (s *Span) systemPages(from, to uintptr) uint32 {
	os := vm.PageBytes()
	base := s.Base &^ (os - 1)
	first, end := (from-base)/os, (to-base+os-1)/os
	return uint32(1<<end - uint64(1)<<first)
}

// Status returns the address of the status of the block that contains addr. s is a block run that
// contains addr. It has statusOf written out, so that isWatched of package heap is inlined.
func (s *Span) Status(addr uintptr) *uint16 { return StatusAt(s.statuses + s.index(addr)*statusBytes) }

// BlockAround returns the address and the status of the block that contains addr. s is a block run
// that contains addr.
func (s *Span) BlockAround(addr uintptr) (base uintptr, status uint16) {
	i := s.index(addr)
	return s.Base + i*s.Size, *StatusAt(s.statusOf(i))
}

// index returns the index of the block that contains addr. In the waste at the end it returns the
// number of blocks.
//
// Precondition: addr is in the run.
func (s *Span) index(addr uintptr) uintptr {
	return uintptr(uint64(addr-s.Base) * uint64(reciprocals[s.class]) >> 32)
}

// statusOf returns the address of the status of block i.
func (s *Span) statusOf(i uintptr) uintptr { return s.statuses + i*statusBytes }

// entryOf returns the entry of block i.
func (s *Span) entryOf(i uintptr) Entry { return Entry{s.Base + i*s.Size, s.statusOf(i)} }

// metadataBytes returns the size of the metadata object of a span: the statuses, which begin at a
// cache line, and the bitmap.
func (c *class) metadataBytes() uintptr { return c.statusesBytes() + c.freeWords()*8 }
func (c *class) statusesBytes() uintptr { return vm.RoundUp((c.blocks+1)*statusBytes, 8) }
func (c *class) freeWords() uintptr     { return (c.blocks + 63) / 64 }

// AddrOf returns the address at which b begins.
func AddrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

const (
	mapHeapShift   = 8
	MapPageShift   = 16
	MapStatusShift = 22

	MapHeapMask = 1<<MapPageShift - 1<<mapHeapShift
	MapPageMask = 1<<MapStatusShift - 1<<MapPageShift

	noMapID = 1<<(MapPageShift-mapHeapShift) - 1 // of a heap that writes no page words

	// Statuses begin at multiples of ObjectUnit, which is 1<<StatusShift. A page word leaves out
	// their lowest bits, which are 0.
	StatusShift = 6
)

// mapIDs assigns numbers to open heaps, for their page words. If all numbers are taken, a heap
// gets noMapID: it writes no page words, and its Free takes the slow path.
var mapIDs struct {
	mu   lockrank.Mutex[lockrank.Leaf]
	used [noMapID]bool
}

// newMapID returns a number that no open heap has, or noMapID. The number is shifted to its
// position in a page word.
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

// pageWord returns the page word of the first page of a span. If the heap has no number, or the
// address of the statuses has more than 48 bits, it returns 0, and Free takes the slow path.
func (s *Span) pageWord(mapID uint64) uint64 {
	at := uint64(s.statuses) >> StatusShift
	if mapID>>mapHeapShift == noMapID || at>>(64-MapStatusShift) != 0 {
		return 0
	}
	return at<<MapStatusShift | mapID | uint64(s.class)
}

// PageWord returns the page word of addr's page with its map ID cleared, and the offset of addr in
// the page. It reports false if the page has no small blocks of the heap with that map ID.
func PageWord(addr uintptr, mapID uint64) (word uint64, off uintptr, ok bool) {
	r := &pages.Addresses.First
	if !r.Holds(addr) {
		return 0, 0, false
	}
	off = addr - r.Base
	word = atomic.LoadUint64(r.PageWord(off)) ^ mapID
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
