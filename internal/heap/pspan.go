// Spans: descriptions of runs.
//
// A run is consecutive pages. Its span is in metadata, where no overrun of a block can
// reach it:
//
//	pages    | page | page | page |     metadata   | span | what the layer above adds |

package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	freeRun     = iota // in a bin of the page heap, or being purged
	takenRun           // in use, not published yet
	blockRun           // cut into blocks by the layer above
	largeRun           // one block
	unmappedRun        // inaccessible: the system refused to map it anew
	guardRun           // one guarded block, live or not, of the layer above
)

// pspan describes a run. It is off-heap, and its links are addresses, so writing them
// needs no write barrier. A span has spanBytes, of which pspan is the beginning; the rest is
// the layer above's.
//
// kind, base, owner, and size of a block run, are fixed while a word of the page map points
// to the span: readers without a lock rely on it. The rest is guarded by a lock of the layer
// above for a block run, and else by the page heap's.
type pspan struct {
	base       uintptr // address of the run
	pages      uintptr
	size       uintptr // of a large block, the size asked for; of a block run, the layer's above
	owner      uint32  // the heap's id
	kind       uint8
	align      uint8   // of a large block: log2 of the alignment asked for
	purgeTried bool    // of a free run: purge has tried to give its memory back
	separate   uint32  // not 0: pages were moved or advised, so the run's mapping may not be its neighbours'
	dirty      uintptr // of a free run: its dirty pages
	next       uintptr // neighbours on a list, 0 at its ends
	prev       uintptr
}

const spanBytes = 128

func pspanPtr(addr uintptr) *pspan { return (*pspan)(vm.Pointer(addr)) }
func (s *pspan) addr() uintptr     { return uintptr(unsafe.Pointer(s)) }
func (s *pspan) bytes() uintptr    { return s.pages * pageBytes }
func (s *pspan) end() uintptr      { return s.base + s.pages*pageBytes }

// isLarge reports whether s is owner's large block of size bytes at addr.
func (s *pspan) isLarge(owner uint32, addr, size uintptr) bool {
	return s.owner == owner && s.kind == largeRun && s.base == addr && s.size == size
}

// setSeparate marks the run as separate from its neighbours' mapping. It is atomic,
// since goroutines may advise parts of one block at once without the heap's lock.
func (s *pspan) setSeparate() { atomic.StoreUint32(&s.separate, 1) }

// reset makes s the span of a run of another kind, and clears all but the run.
func (s *pspan) reset(kind uint8) {
	above := unsafe.Add(unsafe.Pointer(s), unsafe.Sizeof(*s))
	clear(unsafe.Slice((*byte)(above), spanBytes-unsafe.Sizeof(*s)))
	s.kind, s.size, s.separate, s.purgeTried = kind, 0, 0, false
}

// list is a doubly linked list of spans.
type list struct{ head, tail uintptr }

func (l *list) push(s *pspan) {
	s.prev, s.next = 0, l.head
	if l.head != 0 {
		pspanPtr(l.head).prev = s.addr()
	} else {
		l.tail = s.addr()
	}
	l.head = s.addr()
}

func (l *list) pushBack(s *pspan) {
	s.next, s.prev = 0, l.tail
	if l.tail != 0 {
		pspanPtr(l.tail).next = s.addr()
	} else {
		l.head = s.addr()
	}
	l.tail = s.addr()
}

func (l *list) remove(s *pspan) {
	if s.prev != 0 {
		pspanPtr(s.prev).next = s.next
	} else {
		l.head = s.next
	}
	if s.next != 0 {
		pspanPtr(s.next).prev = s.prev
	} else {
		l.tail = s.prev
	}
	s.next, s.prev = 0, 0
}
