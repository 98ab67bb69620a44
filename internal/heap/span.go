// Spans: descriptions of runs, which are cut into blocks, one large block, or free.
//
// A run is consecutive pages. Its span is in metadata, where no overrun of a block can
// reach it:
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

	"github.com/freehold-go/freehold/internal/guardlog"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	freeRun     = iota // in a bin of the page heap, or being purged
	takenRun           // in use, not published yet
	blockRun           // cut into blocks of one class
	largeRun           // one block
	unmappedRun        // inaccessible: the system refused to map it anew
	guardRun           // one guarded block, live or not: see guardrun.go
)

// span describes a run. It is off-heap, and its links are addresses, so writing them
// needs no write barrier.
//
// Invariants of a block run:
//   - live + bits set in free == blocks
//   - a block is free in the span, cached or live; its status is freeZero or
//     freeDirty unless it is live
//
// kind, base, class, statuses and owner, and size of a block run, are fixed while a
// word of the page map points to the span: readers without a lock rely on it. The
// rest is guarded by central's mu for a block run, and else by the page heap's.
type span struct {
	base       uintptr // address of the run
	statuses   uintptr // of a block run: address of the statuses, [blocks+1]uint16
	size       uintptr // block size in bytes; of a large block, the size asked for
	owner      uint32  // the heap's id
	class      uint8   // of a block run
	kind       uint8
	align      uint8  // of a large block: log2 of the alignment asked for
	separate   uint32 // not 0: pages were moved or advised, so the run's mapping may not be its neighbours'
	live       uint32 // blocks that are not free in the span: live ones and cached ones
	holes      uint32 // bytes of free blocks given back to the system
	punched    bool   // no block moved since holes were made
	sampled    bool   // of a large block: it has a record
	pages      uintptr
	dirty      uintptr // of a free run: its dirty pages
	purgeTried bool    // of a free run: purge has tried to give its memory back
	next       uintptr // neighbours on a list, 0 at its ends
	prev       uintptr
	free       bitmap      // of a block run: the blocks that are free in the span
	block      uintptr     // of a guard run: address of the block
	record     guardlog.ID // of a guard run
}

const spanBytes = unsafe.Sizeof(span{})

// The statuses of a free block and of a sampled one. That of another live block is its size,
// at most maxSmall.
const (
	sampled   = 0xfffc // live, and its size is in its record: see samples.go
	freeZero  = 0xfffe // never handed out, and reads zero
	freeDirty = 0xffff
)

// statusAt returns the status at addr.
func statusAt(addr uintptr) *uint16 { return (*uint16)(vm.Pointer(addr)) }

func spanPtr(addr uintptr) *span { return (*span)(vm.Pointer(addr)) }
func (s *span) addr() uintptr    { return uintptr(unsafe.Pointer(s)) }
func (s *span) bytes() uintptr   { return s.pages * pageBytes }
func (s *span) end() uintptr     { return s.base + s.pages*pageBytes }

// isLarge reports whether s is owner's large block of size bytes at addr.
func (s *span) isLarge(owner uint32, addr, size uintptr) bool {
	return s.owner == owner && s.kind == largeRun && s.base == addr && s.size == size
}

// isBlock reports whether a live block of size bytes begins at addr, in a span of
// owner's.
func (s *span) isBlock(owner uint32, addr, size uintptr) bool {
	if s.owner != owner || s.kind != blockRun || size == 0 || size > maxSmall {
		return false
	}
	i := s.index(addr)
	return s.base+i*s.size == addr && uintptr(*statusAt(s.statusOf(i))) == size
}

// index returns the index of the block that contains addr, or the number of blocks for
// the waste at the end.
//
// Precondition: addr is in the run.
func (s *span) index(addr uintptr) uintptr {
	return uintptr(uint64(addr-s.base) * uint64(reciprocals[s.class]) >> 32)
}

// statusOf returns the address of the status of block i.
func (s *span) statusOf(i uintptr) uintptr { return s.statuses + i*statusBytes }

// reset makes s the span of a run of another kind, and clears all but the run.
func (s *span) reset(kind uint8) {
	s.kind, s.class = kind, 0
	s.statuses, s.size, s.live, s.holes, s.free = 0, 0, 0, 0, 0
	s.punched, s.sampled, s.purgeTried = false, false, false
	s.separate = 0
}

// bitsBytes returns the size of the metadata object of a span of blocks: the statuses,
// which begin at a cache line, and the bitmap.
func (c *class) bitsBytes() uintptr     { return c.statusesBytes() + c.freeWords()*8 }
func (c *class) statusesBytes() uintptr { return roundUp((c.blocks+1)*statusBytes, 8) }
func (c *class) freeWords() uintptr     { return (c.blocks + 63) / 64 }

// list is a doubly linked list of spans.
type list struct{ head, tail uintptr }

func (l *list) push(s *span) {
	s.prev, s.next = 0, l.head
	if l.head != 0 {
		spanPtr(l.head).prev = s.addr()
	} else {
		l.tail = s.addr()
	}
	l.head = s.addr()
}

func (l *list) pushBack(s *span) {
	s.next, s.prev = 0, l.tail
	if l.tail != 0 {
		spanPtr(l.tail).next = s.addr()
	} else {
		l.head = s.addr()
	}
	l.tail = s.addr()
}

func (l *list) remove(s *span) {
	if s.prev != 0 {
		spanPtr(s.prev).next = s.next
	} else {
		l.head = s.next
	}
	if s.next != 0 {
		spanPtr(s.next).prev = s.prev
	} else {
		l.tail = s.prev
	}
	s.next, s.prev = 0, 0
}
