// Spans: descriptions of runs.
//
// A run is consecutive pages. Its span is in metadata, where no overrun of a block can
// reach it:
//
//	pages    | page | page | page |     metadata   | span | what the layer above adds |

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
	unmappedRun        // inaccessible: the system refused to map it anew
	GuardRun           // one guarded block, live or not, of the layer above
)

// Span describes a run. It is off-heap, and its links are addresses, so writing them
// needs no write barrier. A span has SpanBytes, of which Span is the beginning; the rest is
// the layer above's.
//
// Kind, Base, Owner, and Size of a block run, are fixed while a word of the page map points
// to the span: readers without a lock rely on it. Size of a large run belongs to whoever has
// the block: its owner, or whoever has claimed it, while Size is 0. The rest is
// guarded by a lock of the layer above for a block run, and else by the page heap's.
type Span struct {
	Base       uintptr // address of the run
	pages      uintptr
	Size       uintptr // of a large block, the size asked for, or 0: see IsLarge; of a block run, the layer above's
	Owner      uint32  // the heap's id
	Kind       uint8
	align      uint8   // of a large block: log2 of the alignment asked for
	purgeTried bool    // of a free run: purge has tried to give its memory back
	Separate   uint32  // not 0: pages were moved or advised, so the run's mapping may not be its neighbours'
	dirty      uintptr // of a free run: its dirty pages
	Next       uintptr // neighbours on a list, 0 at its ends
	Prev       uintptr
}

// SpanBytes is what a span takes, with the part of the layer above.
const SpanBytes = 128

func SpanPtr(addr uintptr) *Span { return (*Span)(vm.Pointer(addr)) }
func (s *Span) Addr() uintptr    { return uintptr(unsafe.Pointer(s)) }
func (s *Span) Pages() uintptr   { return s.pages }
func (s *Span) Bytes() uintptr   { return s.pages * PageBytes }
func (s *Span) Align() uintptr   { return 1 << s.align } // that a large block asked for
func (s *Span) End() uintptr     { return s.Base + s.pages*PageBytes }

// IsLarge reports whether s is owner's large block of size bytes at addr. No live block has a
// size of 0: see Claim.
func (s *Span) IsLarge(owner uint32, addr, size uintptr) bool {
	return s.Owner == owner && s.Kind == LargeRun && s.Base == addr && s.Size == size && size != 0
}

// Claim makes the large block of size bytes at addr, which s was found for, one that is not
// live, with a size of 0: it is the caller's to free, to resize, or to keep for another block.
// Of goroutines that free and resize a block at once only one claims it; the others get false.
// Since s was found it may even describe another live block of that size: that stays as it is.
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

// Unclaim makes a block that was claimed a live one of size bytes.
func (s *Span) Unclaim(size uintptr) { atomic.StoreUintptr(&s.Size, size) }

// setSeparate marks the run as separate from its neighbours' mapping. It is atomic,
// since goroutines may advise parts of one block at once without the heap's lock.
func (s *Span) setSeparate() { atomic.StoreUint32(&s.Separate, 1) }

// reset makes s the span of a run of another kind, and clears all but the run.
func (s *Span) reset(kind uint8) {
	above := unsafe.Add(unsafe.Pointer(s), unsafe.Sizeof(Span{}))
	*(*[SpanBytes - unsafe.Sizeof(Span{})]byte)(above) = [SpanBytes - unsafe.Sizeof(Span{})]byte{}
	s.Kind, s.Size, s.Separate, s.purgeTried = kind, 0, 0, false
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
