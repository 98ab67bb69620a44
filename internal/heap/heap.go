// Heap: the general allocator.
//
// alloc and free are the fast paths, whole, each on one screen; what they leave
// out is in cache.go, large.go and misuse.go. Alloc and Free are these, or the
// same in assembly: see fast_amd64.go.

// Package heap is freehold's engine: malloc and free of any size, for any
// goroutine, on memory from package vm.
//
// A small block comes from a span of its class, by way of a cache; a large one
// is a run of pages:
//
//	Alloc -> cache -> central -> span -+
//	   \                               +-> runs -> space -> vm
//	    +-------- large --------------+
//
// Locks are taken in this order: tending, a central's mu, the heap's mu, the
// space's mu. Caches are held alone.
package heap

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// ErrOutOfMemory is matched by every error that says there is no memory.
var ErrOutOfMemory = errors.New("freehold: out of memory")

var errClosed = errors.New("freehold: heap is closed")

// Options sets up a Heap. The zero value is all defaults.
type Options struct {
	Name       string
	MaxBytes   int
	Decay      time.Duration
	HugePages  bool
	WholePages bool // every block is large, and freed memory goes back at once
}

// Heap is a general allocator. Its zero value is not ready: Init makes it so.
//
// mu guards meta and runs, and everything in the spans of free runs and large
// blocks. tending is held by whoever gives memory back: see tend.go.
type Heap struct {
	caches caches
	id     uint32
	closed atomic.Bool

	name       string
	maxBytes   uintptr
	hugePages  bool
	wholePages bool
	decay      time.Duration

	mu    sync.Mutex
	meta  meta
	runs  runs
	large largeCount
	lost  list // runs that the system left without access

	tending sync.Mutex
	timer   *time.Timer
	awake   atomic.Bool
	tick    uint32 // ticks so far
	drained uint32 // the tick in which the caches were last emptied

	central [numClasses]central
}

// lastID is the id that the newest heap has. Ids are not used again; 2^32
// heaps in one process are not expected.
var lastID atomic.Uint32

// Init makes h ready. It takes no memory.
func (h *Heap) Init(o Options) {
	addresses.init()
	h.caches.init()
	h.id = lastID.Add(1)
	h.name = o.Name
	if h.name == "" {
		h.name = "heap"
	}
	if o.MaxBytes < 0 {
		panic(fmt.Sprintf("freehold: NewHeap: MaxBytes is %d", o.MaxBytes))
	}
	h.maxBytes = uintptr(o.MaxBytes)
	h.hugePages, h.wholePages = o.HugePages, o.WholePages
	if h.decay = o.Decay; h.decay == 0 {
		h.decay = DefaultDecay
	}
	for i := range h.central {
		h.central[i].class = uint8(i)
	}
	h.timer = time.AfterFunc(time.Hour, h.tend)
	h.timer.Stop()
}

// alloc is Alloc in Go.
func (h *Heap) alloc(size, align int, zero bool) ([]byte, error) {
	mask := uint(align) - 1
	if uint(size)-1 >= maxSmall || mask >= maxAlign || uint(align)&mask != 0 {
		return h.allocLarge(size, align, zero)
	}
	class := classOf[((uint(size)+mask)&^mask+7)/8]
	if c := h.cacheOf(h.enter()); c != nil {
		if s := &c.slots[class]; s.n > 0 {
			e := s.entry(s.n - 1)
			if st := state(e.state &^ zeroBlock); *st == 0 {
				*st = uint16(size)
				s.n--
				addr, clean := e.addr, e.state&zeroBlock
				h.leave(c)
				b := unsafe.Slice((*byte)(vm.Pointer(addr)), size)
				if zero && clean == 0 {
					clear(b)
				}
				return b, nil
			}
		}
		h.leave(c)
	} else {
		h.leave(c)
	}
	return h.allocSmall(class, size, align, zero)
}

// free is Free in Go.
func (h *Heap) free(b []byte) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	c := h.cacheOf(h.enter())
	if s := addresses.first.span(addr); s != nil && c != nil {
		i := s.index(addr)
		st := state(s.states + i*2)
		slot := &c.slots[s.class]
		if int(*st) == len(b) && s.base+i*s.size == addr && s.owner == h.id && cap(b) == len(b) && len(b) != 0 && slot.n < slot.cap {
			*st = 0
			*slot.entry(slot.n) = entry{addr, uintptr(unsafe.Pointer(st))}
			slot.n++
			h.leave(c)
			return
		}
	}
	h.leave(c)
	h.freeSlow(b)
}

// Owns reports whether b begins in this heap's memory.
func (h *Heap) Owns(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	r := addresses.regionOf(addr)
	return r != nil && atomic.LoadUint32(r.owner(addr)) == h.id
}

// GoodSize returns the size of the block that Alloc would use for size bytes.
func (h *Heap) GoodSize(size int) int {
	switch {
	case size <= 0:
		return 0
	case size <= maxSmall && !h.wholePages:
		return int(classes[classOf[(size+7)/8]].size)
	case size > maxSize:
		return size
	}
	return int(roundUp(uintptr(size), pageBytes))
}

// Close gives all memory back. The blocks become inaccessible, and a later use
// of the heap panics.
func (h *Heap) Close() {
	h.tending.Lock()
	defer h.tending.Unlock()
	if h.closed.Swap(true) {
		return
	}
	h.timer.Stop()
	for i := range h.caches {
		h.caches[i].Store(0)
	}
	for i := range h.central {
		h.central[i].close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, segment := range h.runs.segments {
		addresses.give(segment.base, segment.size)
	}
	h.closeMeta()
	h.runs, h.large, h.lost = runs{}, largeCount{}, list{}
}
