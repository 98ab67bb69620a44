// Spans: descriptions of runs.
//
// A run is consecutive pages. Its span is in metadata, where no overrun of a block can reach it:
//
//	pages    | page | page | page |     metadata   | span | the layer above's part |

package pages

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	FreeRun     = iota // in a bin of the page heap, or being purged
	takenRun           // in use, not published yet
	BlockRun           // cut into blocks by the layer above
	LargeRun           // one block
	unmappedRun        // not to be used: the system refused to map or to place it anew
	GuardRun           // one guarded block, live or not, of the layer above
)

// Span describes a run. It is off-heap, and its links are addresses, so writing them needs no
// write barrier. A span takes SpanBytes: this struct, then the layer above's part.
//
// Kind, Base, Owner, and Size of a block run, are fixed while a word of the page map points to
// the span: readers without a lock rely on it. Size of a large run belongs to the owner of the
// block, or while it is 0 to the goroutine that claimed the block. A lock of the layer above
// guards the rest for a block run, and the page heap's mu for other runs.
type Span struct {
	Base       uintptr // address of the run
	pages      uintptr
	Size       uintptr // large block: requested size, or 0 if claimed; block run: the layer above's
	Owner      uint32  // the heap's ID
	Kind       uint8
	align      uint8   // large block: log2 of the requested alignment
	purgeTried bool    // free run: purge has tried to give its memory back
	Separate   uint32  // 1: pages were moved or advised, so the run may have mappings of its own
	Watched    uint32  // large block: 1 if the layer above watches it; atomic
	dirty      uintptr // free run: its dirty pages
	Next       uintptr // neighbours on a list, 0 at its ends
	Prev       uintptr
}

// SpanBytes is the size of a span, with the layer above's part.
const SpanBytes = 128

// For the assembly of package heap.
const (
	SpanPages = unsafe.Offsetof(Span{}.pages)
	SpanAlign = unsafe.Offsetof(Span{}.align)
)

func SpanPtr(addr uintptr) *Span { return (*Span)(vm.Pointer(addr)) }
func (s *Span) Addr() uintptr    { return uintptr(unsafe.Pointer(s)) }
func (s *Span) Pages() uintptr   { return s.pages }
func (s *Span) Bytes() uintptr   { return s.pages * PageBytes }
func (s *Span) Align() uintptr   { return 1 << s.align } // of a large block, as requested
func (s *Span) End() uintptr     { return s.Base + s.pages*PageBytes }

// IsLarge reports whether s is owner's large block of size bytes at addr. No live block has a
// size of 0: see Claim.
func (s *Span) IsLarge(owner uint32, addr, size uintptr) bool {
	return s.Owner == owner && s.Kind == LargeRun && s.Base == addr && s.Size == size && size != 0
}

// Claim takes the large block of size bytes at addr out of use, by setting its Size to 0. The
// caller may then free it, resize it or keep it for another block. If several goroutines free or
// resize a block at once, one claims it and the others get false. If s has come to describe a
// block at another address since the caller found it, Claim leaves that block live.
func (s *Span) Claim(addr, size uintptr) bool {
	if !atomic.CompareAndSwapUintptr(&s.Size, size, 0) {
		return false
	}
	if s.Base != addr {
		s.Unclaim(size)
		return false
	}
	return true
}

// Unclaim makes a claimed block a live one of size bytes.
func (s *Span) Unclaim(size uintptr) { atomic.StoreUintptr(&s.Size, size) }

// setSeparate marks the run as separate: its mappings may not be its neighbours'. It is atomic,
// since goroutines may advise parts of one block at once without the heap's lock.
func (s *Span) setSeparate() { atomic.StoreUint32(&s.Separate, 1) }

// reset makes s the span of a run of another kind. It keeps Base, pages, Owner, align, dirty and
// the links, and clears the rest, the layer above's part too.
func (s *Span) reset(kind uint8) {
	above := unsafe.Add(unsafe.Pointer(s), unsafe.Sizeof(Span{}))
	*(*[SpanBytes - unsafe.Sizeof(Span{})]byte)(above) = [SpanBytes - unsafe.Sizeof(Span{})]byte{}
	s.Kind, s.Size, s.Separate, s.Watched, s.purgeTried = kind, 0, 0, 0, false
}

// List is a doubly linked list of spans.
type List struct{ Head, Tail uintptr }

func (l *List) Push(s *Span) {
	s.Prev, s.Next = 0, l.Head
	if l.Head != 0 {
		SpanPtr(l.Head).Prev = s.Addr()
	} else {
		l.Tail = s.Addr()
	}
	l.Head = s.Addr()
}

func (l *List) PushBack(s *Span) {
	s.Next, s.Prev = 0, l.Tail
	if l.Tail != 0 {
		SpanPtr(l.Tail).Next = s.Addr()
	} else {
		l.Head = s.Addr()
	}
	l.Tail = s.Addr()
}

func (l *List) Remove(s *Span) {
	if s.Prev != 0 {
		SpanPtr(s.Prev).Next = s.Next
	} else {
		l.Head = s.Next
	}
	if s.Next != 0 {
		SpanPtr(s.Next).Prev = s.Prev
	} else {
		l.Tail = s.Prev
	}
	s.Next, s.Prev = 0, 0
}
