// Segments: blocks of the parent's memory to which items are appended.
//
//	spare --> open --> sealed --> (emptied) --> limbo --> spare, or back to the parent
//	  ^                              |                      ^
//	  +------------------------------+----------------------+
//
// An open segment takes new items. A sealed segment takes none, except that large items fill the
// rest of a few: see restFor. Items become garbage when they are replaced or deleted. A segment is
// empty once no slot refers to it. It is then in limbo until its last reader has unpinned it. A
// large item may have a sealed segment of its own.
//
// Each segment has a number. A page describes 64 segments:
//
//	page, 8 KiB   | segment | segment | ... | pins of stripe 0 | pins of stripe 1 | ...
//	stripe        | pin | pin | ...    a counter of 4 B for each segment of the page
//
// # Why no reader sees reused memory
//
//	reader   R1  load the slot
//	         R2  add 1 to the segment's pin
//	         R3  load the slot again: if it differs but for hits, unpin and begin again
//	         R4  read the item
//	         R5  subtract 1 from the pin
//
//	writer   W1  store 0, or another place, to all slots of the segment
//	         W2  load all pins of the segment: unless each is 0, stop
//	         W3  reuse the memory
//
// R1 to R3, R5, W1 and W2 are atomic operations, for which Go guarantees one total order. There are
// three cases:
//
//   - R3 comes before W1. Then R2 does too, and W2 sees the pin until R5.
//   - R3 comes after W1 and loads another slot. The reader unpins without reading.
//   - R3 comes after W1 and loads an equal slot, stored after W3. The pin protects that new item.
//
// The race detector sees the order too. R5 happens before the W2 that loads 0. Writing an item
// happens before storing the slot that R3 loads.
//
// All pages are returned at once, when no segment has memory and every reader between R1 and R3 has
// finished.

package cache

import (
	"math/bits"
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

	stripeBytes = pageSegments * 4 // of the pins of a stripe

	descriptorBytes = 96
	pinsFrom        = pageSegments * descriptorBytes
)

// A page has room for the descriptors and the pins.
const _ = uint(pageBytes - pinsFrom - stripes*stripeBytes)

// A state is a step in the life of a segment.
type state uint8

const (
	unused state = iota // no memory
	spare
	open
	sealed
	limbo
)

// A segment describes a block of the parent. The shard's lock guards it, with one exception:
// readers that hold a pin read addr, age and class, which do not change while the segment is pinned.
// GetMany reads addr without a pin, only to prefetch. So addr is stored atomically.
type segment struct {
	addr  uintptr
	age   uint64 // grows from each segment to the next; a part of versions
	turn  uint64 // order in its queue: its age, or the shard's when it was last moved to the end
	bytes uint32 // size of the block
	used  uint32 // bytes of all items, which are the block's first bytes
	live  uint32 // bytes of the items that slots refer to: see item.live
	state state
	main  bool  // in the main queue, else in the small one
	alone bool  // has one item, which stays where it is
	class uint8 // of its items: see classFor
	expiry
}

const _ = uint(descriptorBytes - unsafe.Sizeof(segment{}))

// isKept reports whether the items of the segment are kept. Such a segment is in no queue.
func (g *segment) isKept() bool { return g.class >= classes }

// item returns the item at an offset.
func (g *segment) item(offset uint32) *item { return (*item)(pointer(g.addr + uintptr(offset))) }

// garbage returns the bytes of items that are dead, and of slack that counts as garbage.
func (g *segment) garbage() int { return int(g.used - g.live) }

// count adds the new item in a spot to the figures of its segment and shard. uncount subtracts an
// item that became garbage.
func (s *shard) count(at spot) {
	g := s.segs.at(at.n)
	it := g.item(at.offset)
	s.countLive(g, it.live())
	s.expect(g, at.offset, it.expires.Load())
}

func (s *shard) uncount(g *segment, it *item) { s.countLive(g, -it.live()) }

// countLive adds bytes, which may be negative, to the live bytes of a segment and its shard.
func (s *shard) countLive(g *segment, bytes int) {
	g.live += uint32(bytes)
	s.live += bytes
}

// fill counts more bytes of a segment as used. reset counts all of its bytes as unused.
func (s *shard) fill(g *segment, bytes int) {
	g.used += uint32(bytes)
	s.filled += bytes
}

func (s *shard) reset(g *segment) {
	s.filled -= int(g.used)
	g.used, g.live = 0, 0
}

// segments are the segments of a shard, numbered from 1.
type segments struct {
	pages      blocks.List
	offsetBits uint // bits of a place that hold the offset
	ageBits    uint // bits of a position below the age, without rewrites: see version.go
	unused     []uint32
}

func (gs *segments) init(segmentBytes, runBytes int) {
	gs.pages.Init(pageBytes)
	gs.offsetBits = uint(bits.Len(uint(runBytes/unitBytes - 1)))
	gs.ageBits = uint(bits.Len(uint(segmentBytes/unitBytes - 1)))
}

// at returns segment n.
func (gs *segments) at(n uint32) *segment {
	return (*segment)(pointer(gs.pages.At(n>>pageBits) + uintptr(n&(pageSegments-1))*descriptorBytes))
}

// pin returns the pin counter of a segment in one stripe.
func (gs *segments) pin(n, stripe uint32) *atomic.Uint32 {
	return (*atomic.Uint32)(pointer(gs.pins(n) + uintptr(stripe)*stripeBytes))
}

// pins returns the address of a segment's first pin counter. The others follow at distances of
// stripeBytes.
func (gs *segments) pins(n uint32) uintptr {
	return gs.pages.At(n>>pageBits) + pinsFrom + uintptr(n&(pageSegments-1))*4
}

// isPinned reports whether the segment may have readers.
func (gs *segments) isPinned(n uint32) bool {
	pins := pointer(gs.pins(n))
	for stripe := range uintptr(stripes) {
		if (*atomic.Uint32)(unsafe.Add(pins, stripe*stripeBytes)).Load() != 0 {
			return true
		}
	}
	return false
}

// count returns the number of segments that pages have room for.
func (gs *segments) count() uint32 { return uint32(gs.pages.Len() << pageBits) }

// itemIn returns the item in a spot.
func (s *shard) itemIn(at spot) *item { return s.segs.at(at.n).item(at.offset) }

// each calls f with each segment that has memory.
func (gs *segments) each(f func(n uint32, g *segment)) {
	for n := range gs.count() {
		if g := gs.at(n); g.state != unused {
			f(n, g)
		}
	}
}

// takeNumber takes the number of an unused segment. If there is none, it allocates a page.
func (gs *segments) takeNumber(parent freehold.Allocator) (uint32, error) {
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

// place returns the place of an offset in segment n.
func (gs *segments) place(n, offset uint32) place {
	return place(n)<<gs.offsetBits | place(offset/unitBytes)
}

// itemAt returns the item at a place.
func (gs *segments) itemAt(at place) *item {
	n, offset := gs.split(at)
	return gs.at(n).item(offset)
}

// addrAt returns the address of a place. The item there may be gone.
func (gs *segments) addrAt(at place) uintptr {
	n, offset := gs.split(at)
	return atomic.LoadUintptr(&gs.at(n).addr) + uintptr(offset)
}

// split returns the segment number and the offset of a place.
func (gs *segments) split(at place) (n, offset uint32) {
	return uint32(at >> gs.offsetBits), uint32(at&(1<<gs.offsetBits-1)) * unitBytes
}
