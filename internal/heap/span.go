// Spans: runs of pages, cut into blocks, in use as one large block, or free.
//
// A run is a number of neighbouring pages; its span describes it. Spans stand
// in metadata, out of line, where no overrun of a block can reach them:
//
//	pages    | page | page | page |     metadata   | span |
//	         | block 0 | block 1 | … |             | bits: statuses[blocks+1] free[words] |
//
// The status of a block is the size it was asked for, or that it is free. Free
// compares it with the length of the slice that it is given, and that one
// comparison finds double frees and cut slices. The status past the end is free:
// it stands for the waste at a span's end.
//
// A span of blocks is empty, partial or full. Partial and empty spans are on
// their class's list; see central.go.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	freeRun     = iota // on a bin of the page heap, or being purged
	takenRun           // in use, but not in the page map yet
	blockRun           // cut into blocks of one class
	largeRun           // one block
	unmappedRun        // without access: the system refused to map it anew
)

// span describes a run. It is off-heap; its links are addresses, which keeps
// write barriers out.
//
// Invariants of a block run:
//   - live + bits set in free == blocks
//   - block i is free in the span, cached or live; its status is freeZero or
//     freeDirty unless live
//
// kind, base, size, class, statuses and owner are fixed while any page word
// points to the span. The rest is guarded by the lock of its central for a
// block run, by the page heap's otherwise.
type span struct {
	base       uintptr // address of the run
	statuses   uintptr // of a block run: address of the statuses, [blocks+1]uint16
	size       uintptr // block size in bytes; of a large block, the size asked for
	owner      uint32  // the heap's id
	class      uint8   // of a block run
	kind       uint8
	align      uint8  // of a large block: log2 of the alignment asked for
	separate   uint32 // not 0: the run's mapping is not its neighbours', since its pages were moved here or it was advised
	live       uint32 // blocks that are not free in the span
	holes      uint32 // bytes of free blocks given back to the system
	punched    bool   // no block moved since holes were made
	pages      uintptr
	dirty      uintptr // of a free run: pages that hold memory ...
	purgeTried bool    // ... which was tried to give back already
	next       uintptr // neighbours on a list, 0 at its ends
	prev       uintptr
	free       bitmap // of a block run: the blocks that are free in the span
}

const spanBytes = unsafe.Sizeof(span{})

// The statuses of a free block. A live block's is its size, maxSmall at most.
const (
	freeZero  = 0xfffe // it holds zeros: nobody had it yet
	freeDirty = 0xffff
)

// statusAt returns the status at addr.
func statusAt(addr uintptr) *uint16 { return (*uint16)(vm.Pointer(addr)) }

func spanPtr(addr uintptr) *span { return (*span)(vm.Pointer(addr)) }
func (s *span) addr() uintptr    { return uintptr(unsafe.Pointer(s)) }
func (s *span) bytes() uintptr   { return s.pages * pageBytes }
func (s *span) end() uintptr     { return s.base + s.pages*pageBytes }

// isLarge reports whether s is the large block of that size at addr.
func (s *span) isLarge(owner uint32, addr, size uintptr) bool {
	return s.owner == owner && s.kind == largeRun && s.base == addr && s.size == size
}

// isBlock reports whether s is of blocks, of which a live one of that size is at
// addr.
func (s *span) isBlock(owner uint32, addr, size uintptr) bool {
	if s.owner != owner || s.kind != blockRun || size == 0 || size > maxSmall {
		return false
	}
	i := s.index(addr)
	return s.base+i*s.size == addr && uintptr(*statusAt(s.statusOf(i))) == size
}

// index returns which block addr lies in, or one past the last for the waste
// at the end. Precondition: addr lies in the run.
func (s *span) index(addr uintptr) uintptr {
	return uintptr(uint64(addr-s.base) * uint64(reciprocals[s.class]) >> 32)
}

// statusOf returns the address of the status of block i.
func (s *span) statusOf(i uintptr) uintptr { return s.statuses + i*statusBytes }

// whole makes s one piece again, with nothing but its run.
func (s *span) reset(kind uint8) {
	s.kind, s.class = kind, 0
	s.statuses, s.size, s.live, s.holes, s.free = 0, 0, 0, 0, 0
	s.punched, s.purgeTried = false, false
	s.separate = 0
}

// bitsBytes returns the size of the bits of a class's spans: the statuses, which
// begin a cache line, and the bitmap.
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
