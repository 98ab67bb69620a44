// Spans: what the engine adds to the description of a run.
//
// The statuses of a span's blocks, and a bit for each that is free in the span, are in
// metadata like the span itself, where no overrun of a block can reach them:
//
//	pages    | page | page | page |     metadata   | span |
//	         | block 0 | block 1 | … |             | statuses[blocks+1] | free[words] |
//
// The status of a block is its requested size, or a value above all sizes if it is
// free. Free compares it with the length of the slice: this one comparison detects
// double frees and cut slices. The waste at a span's end has a status too, the last,
// which is always free.
//
// A span of blocks is empty, partial or full:
//
//	empty --alloc--> partial --alloc--> full
//	  ^                |   ^              |
//	  +---last free----+   +-----free-----+
//
// Empty and partial spans are on the list of their class: see central.go.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// span describes a run. It begins with what package pages knows of it.
//
// Invariants of a block run:
//   - live + bits set in free == blocks
//   - a block is free in the span, cached or live; its status is freeZero or
//     freeDirty unless it is live
//
// class and statuses are fixed while a word of the page map points to the span: readers
// without a lock rely on it. central's mu guards the rest of a block run.
type span struct {
	pages.Span
	statuses uintptr      // of a block run: address of the statuses, [blocks+1]uint16
	free     pages.Bitmap // of a block run: the blocks that are free in the span
	live     uint32       // blocks that are not free in the span: live ones and those in caches and stocks
	holes    uint32       // bytes of free blocks given back to the system
	class    uint8        // of a block run
	punched  bool         // no block moved since holes were made
	watched  uint32       // of a large block, 1 or 0, atomic: see watched.go
}

const _ = pages.SpanBytes - unsafe.Sizeof(span{}) // a span has room for it

// The statuses of a free block and of a watched one. That of another live block is its size,
// at most maxSmall. Those of a freed span are inLimbo: see limbo.go.
const (
	watched   = 0xfffc // live, and package watch knows its size: see watched.go
	freeZero  = 0xfffe // never handed out, and reads zero
	freeDirty = 0xffff
)

// statusAt returns the status at addr.
func statusAt(addr uintptr) *uint16 { return (*uint16)(vm.NonNil(addr)) }

func spanPtr(addr uintptr) *span { return (*span)(vm.Pointer(addr)) }

// spanOf returns what package pages calls s.
func spanOf(s *pages.Span) *span { return (*span)(unsafe.Pointer(s)) }

// spanAt returns the span in the page map's word of addr's page, or nil.
func spanAt(addr uintptr) *span { return spanOf(pages.SpanAt(addr)) }

// isBlock reports whether a live block of size bytes begins at addr, in a span of
// owner's.
func (s *span) isBlock(owner uint32, addr, size uintptr) bool {
	if s.Owner != owner || s.Kind != pages.BlockRun || size == 0 || size > maxSmall {
		return false
	}
	i := s.index(addr)
	return s.Base+i*s.Size == addr && uintptr(*statusAt(s.statusOf(i))) == size
}

// index returns the index of the block that contains addr, or the number of blocks for
// the waste at the end.
//
// Precondition: addr is in the run.
func (s *span) index(addr uintptr) uintptr {
	return uintptr(uint64(addr-s.Base) * uint64(reciprocals[s.class]) >> 32)
}

// statusOf returns the address of the status of block i.
func (s *span) statusOf(i uintptr) uintptr { return s.statuses + i*statusBytes }

// bitsBytes returns the size of the metadata object of a span of blocks: the statuses,
// which begin at a cache line, and the bitmap.
func (c *class) bitsBytes() uintptr     { return c.statusesBytes() + c.freeWords()*8 }
func (c *class) statusesBytes() uintptr { return pages.RoundUp((c.blocks+1)*statusBytes, 8) }
func (c *class) freeWords() uintptr     { return (c.blocks + 63) / 64 }
