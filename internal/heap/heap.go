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

	"github.com/freehold-go/freehold/internal/pin"
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
// mu guards meta, runs and own, and everything in the spans of free runs and large
// blocks. tending is held by whoever gives memory back: see tend.go.
type Heap struct {
	caches caches
	places pin.Places
	holder uint64 // the heap's number in tags, at its place there
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
	own   map[*OwnCache]struct{}

	limbo    limbo
	draining bool // mu guards it: the caches are being taken, no others are made

	refusals  atomic.Int64 // requests that found no memory at first
	drainedAt atomic.Int64 // when the caches were drained last, in nanoseconds of Unix time

	tending  sync.Mutex
	counting sync.Mutex // held while blocks are where Stats does not look
	alarm    alarm
	tick     uint32 // ticks so far
	drained  uint32 // the tick in which the caches were last emptied

	central [numClasses]central
}

// lastID is the id that the newest heap has. Ids are not used again; 2^32
// heaps in one process are not expected.
var lastID atomic.Uint32

// Init makes h ready. It takes no memory.
func (h *Heap) Init(o Options) {
	addresses.init()
	h.initCaches()
	h.holder = takeHolder()
	h.own = map[*OwnCache]struct{}{}
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
}

// alloc is Alloc in Go.
func (h *Heap) alloc(size, align int, zero bool) ([]byte, error) {
	class := classFor(size, align)
	if class == 0 {
		return h.allocLarge(size, align, zero)
	}
	place := h.places.Enter()
	addr, was := h.cacheOf(place).take(class, size)
	h.places.Leave(place)
	if addr == 0 {
		return h.allocSlow(nil, class, size, align, zero)
	}
	return block(addr, size, zero && was != freeZero), nil
}

// free is Free in Go.
func (h *Heap) free(b []byte) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	place := h.places.Enter()
	st, class := stateAt(addr, h.holder)
	// The state of a free block is larger than maxSmall.
	if st != 0 && len(b) <= maxSmall && int(*state(st)) == len(b) && h.cacheOf(place).push(class, entry{addr, st}) {
		*state(st) = freeDirty
		h.places.Leave(place)
		return
	}
	h.places.Leave(place)
	h.freeSlow(nil, b)
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
	h.initCaches()
	for i := range h.central {
		h.central[i].close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, segment := range h.runs.segments {
		addresses.give(segment.base, segment.size)
	}
	h.closeMeta()
	giveHolder(h.holder)
	for o := range h.own {
		o.cache.Store(noCache.addr())
	}
	h.runs, h.large, h.lost, h.own = runs{}, largeCount{}, list{}, nil
}
