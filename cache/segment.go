// Segments: blocks of the parent that items are written to, one behind the other.
//
//	spare --> open --> sealed --> (emptied) --> limbo --> spare, or back to the parent
//	  ^                              |                      ^
//	  +------------------------------+----------------------+
//
// An open segment takes new items; a sealed one only loses them. One that was emptied, so that no
// slot refers to it, is in limbo until the last reader has left. Large items have a sealed segment
// of their own.
//
// Segments have numbers. A page describes 64 of them:
//
//	page, 8 KiB   | segment | segment | ... | pins of stripe 0 | pins of stripe 1 | ...
//	stripe        | pin | pin | ...    a counter of 4 B for each segment of the page
//
// # Why no reader sees reused memory
//
//	reader:   R1 load the slot   R2 add 1 to the segment's pin   R3 load the slot, it is the same   R4 read   R5 subtract 1
//	writer:   W1 store 0, or another place, to all slots of the segment   W2 load all its pins, each is 0   W3 reuse
//
// These are atomic operations, which have one total order in Go, on weak memory too. If R3 comes
// before W1, so does R2, and W2 sees the pin until R5. If it comes after W1, the slot is another
// one, and the reader takes its pin back without reading. Or the slot is the same again: it then
// refers to an item that was written after W3, and the pin counts for that. R5 happens before the
// W2 that sees 0, and writing an item before the slot is stored that R1 loads, so the race detector
// sees the order too. A page is returned when no segment has memory, once every reader between R1
// and R3 has finished.

package cache

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/blocks"
)

const (
	pageBits     = 6
	pageSegments = 1 << pageBits
	pageBytes    = 8 << 10

	stripeBits = 3
	stripes    = 1 << stripeBits

	segmentBytes = 96
	pinsFrom     = pageSegments * segmentBytes
)

const _ = uint(pageBytes - pinsFrom - stripes*pageSegments*4)

// A state is where a segment is in its life.
type state uint8

const (
	unused state = iota // no memory
	spare
	open
	sealed
	limbo
)

// A segment describes a block. The shard's lock guards it; readers who hold a pin read addr and
// age, which stay meanwhile. GetMany reads addr without a pin, for a prefetch alone, so it is
// stored atomically.
type segment struct {
	addr  uintptr
	age   uint64 // grows from one segment to the next, and is part of versions
	turn  uint64 // in its queue: its age, or that at which it was put at the end again
	bytes uint32 // of the block
	used  uint32 // up to here there are items
	live  uint32 // bytes of those that slots refer to
	state state
	main  bool // the queue that it is in
	expiry
}

const _ = uint(segmentBytes - unsafe.Sizeof(segment{}))

// item returns the item at an offset.
func (g *segment) item(offset uint32) *item { return (*item)(pointer(g.addr + uintptr(offset))) }

// garbage returns how many bytes of items are dead, or have expired at that second.
func (g *segment) garbage(now uint32) int {
	return int(g.used - min(g.live, g.used) + min(g.passed(now), g.live))
}

// count and uncount keep the figures of a segment when it gets an item, and when one becomes
// garbage.
func (s *shard) count(g *segment, it *item) {
	g.live += uint32(it.size())
	s.live += it.size()
	g.note(it.expires.Load(), it.size())
}

func (s *shard) uncount(g *segment, it *item) {
	g.live -= uint32(it.size())
	s.live -= it.size()
	g.forget(it.expires.Load(), it.size())
}

// fill and reset count bytes of a segment as used, and all of them as unused.
func (s *shard) fill(g *segment, bytes int) {
	g.used += uint32(bytes)
	s.filled += bytes
}

func (s *shard) reset(g *segment) {
	s.filled -= int(g.used)
	g.used, g.live = 0, 0
}

// segments has the segments of a shard, by their numbers, from 1.
type segments struct {
	pages    blocks.List
	unitBits uint // of a place, which are the offset
	unused   []uint32
}

func (gs *segments) init(segmentBytes int) {
	gs.pages.Init(pageBytes)
	for unitBytes<<gs.unitBits < segmentBytes {
		gs.unitBits++
	}
}

// at returns a segment.
func (gs *segments) at(n uint32) *segment {
	return (*segment)(pointer(gs.pages.At(n>>pageBits) + uintptr(n&(pageSegments-1))*segmentBytes))
}

// pin returns the counter of a segment's readers in one stripe.
func (gs *segments) pin(n, stripe uint32) *atomic.Uint32 {
	return (*atomic.Uint32)(pointer(gs.pages.At(n>>pageBits) + pinsFrom +
		uintptr(stripe*pageSegments+n&(pageSegments-1))*4))
}

// isPinned reports whether there may be readers.
func (gs *segments) isPinned(n uint32) bool {
	for stripe := range uint32(stripes) {
		if gs.pin(n, stripe).Load() != 0 {
			return true
		}
	}
	return false
}

// each calls f with each segment that has memory.
func (gs *segments) each(f func(n uint32, g *segment)) {
	for n := range uint32(gs.pages.Len() << pageBits) {
		if g := gs.at(n); g.state != unused {
			f(n, g)
		}
	}
}

// number returns a number without memory. It needs a page from time to time.
func (gs *segments) number(parent freehold.Allocator) (uint32, error) {
	if len(gs.unused) == 0 {
		if err := gs.pages.Grow(parent); err != nil {
			return 0, err
		}
		first := uint32(gs.pages.Len()-1) << pageBits
		for n := first + pageSegments - 1; n >= first && n > 0; n-- {
			gs.unused = append(gs.unused, n)
		}
	}
	n := gs.unused[len(gs.unused)-1]
	gs.unused = gs.unused[:len(gs.unused)-1]
	return n, nil
}

// place returns where the item at an offset of a segment is.
func (gs *segments) place(n, offset uint32) place {
	return place(n)<<gs.unitBits | place(offset/unitBytes)
}

// itemAt returns the item at a place.
func (gs *segments) itemAt(at place) *item {
	n, offset := gs.split(at)
	return gs.at(n).item(offset)
}

// addrOf returns the address of a place, which need not be an item's any more.
func (gs *segments) addrOf(at place) uintptr {
	n, offset := gs.split(at)
	return atomic.LoadUintptr(&gs.at(n).addr) + uintptr(offset)
}

// split returns the segment of a place, and the offset there.
func (gs *segments) split(at place) (n, offset uint32) {
	return uint32(at >> gs.unitBits), uint32(at&(1<<gs.unitBits-1)) * unitBytes
}
