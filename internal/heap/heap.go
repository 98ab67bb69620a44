// Package heap is freehold's engine: malloc and free of any size, for any goroutine.
//
//	Alloc --+--> leaf: the processor's cache --+-- small block --> package small --+
//	        |                                  |                                   +--> package pages
//	        +--> alloc.go: slow paths ---------+-- large block: a run of pages ----+
//
// A block of up to 32 KiB is small: package small rounds its size up to a size class and keeps free
// blocks in magazines. A block of more than 32 KiB is large: it is a run of pages of its own. Each
// processor has a cache with magazines of each class and some freed large blocks, so most calls
// take no lock. Package watch observes chosen blocks: samples, guarded blocks, blocks with red
// zones.
//
// Terms, besides the ones of packages pages and small:
//
//	cache     a processor's magazines and kept runs
//	kept run  the run of a freed large block, in a cache
//	slot      the place of a processor's cache; a call holds it while it uses the cache
//	leaf      a fast path: a function that calls no other, so its goroutine stays on its processor
//	watched   of a block: package watch has its size and handles its Free and Resize
//	drain     to return the blocks in all caches and depots to the spans
//	scavenge  to give unused memory back to the system, by a timer or in Trim
//
// # What may touch what
//
// Each file uses only the files below it:
//
//	heap.go                            Init and Close
//	engine.go                          what package watch calls
//	pointers.go                        C's interface
//	leaf.go                            fast paths: caches and statuses, no lock
//	fast_amd64.go, .s                  the same in assembly
//	alloc.go                           slow paths of Alloc, Free and Resize
//	large.go                           large blocks
//	scavenge.go, walk.go               ticks, Trim; visits to every block
//	reclaim.go                         gives memory back before it refuses a request
//	stats.go                           figures
//	cache.go                           the caches of all slots
//	keptruns.go                        the kept runs of one cache
//	misuse.go, watched.go, registry.go messages, watched blocks, open heaps
//
// # Locks
//
// Package lockrank has their order. Caches have no lock: see package pin.
package heap

import (
	"cmp"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// Options sets up a Heap. The zero value is all defaults.
type Options struct {
	Name       string
	MaxBytes   int
	Decay      time.Duration
	HugePages  bool
	WholePages bool        // every block is large, and freed memory goes back at once
	Payer      pages.Payer // is charged for the heap's memory, if it is not nil
}

// Obstacle returns the reason why the fast paths of small blocks take pins, or "" if they take
// none.
func Obstacle() string {
	return cmp.Or(watch.EachBlock(), pin.Obstacle())
}

// Of returns the heap inside a *freehold.Heap. Package freehold sets Of.
var Of func(h any) *Heap

// Heap is a general allocator. pin.New makes a Heap, or an object whose last field is a Heap. Then
// Init makes it ready.
type Heap struct {
	uncounted atomic.Int64  // pages refused since worthADrain last counted
	refused   atomic.Uint64 // requests that got no block
	collected atomic.Uint64 // calls of Collect
	countedAt atomic.Int64  // when worthADrain last counted, in nanoseconds of Unix time
	number    uint64        // in registry
	Shared    bool          // it serves the whole process: package freehold does not close it
	ticks     uint32        // so far
	drained   uint32        // the value of ticks at the last drain by a tick
	relieved  uint64        // slowCalls at the last relief; Scavenging guards it
	asked     bool          // the last relief has asked other processors to flush; Scavenging guards it
	mostLive  int           // the most live bytes at a relief; ticks lower it; Scavenging guards it
	watch     watch.Heap    // the watched blocks

	pages pages.Heap
	small small.Heap

	mapID  uint64 // small.MapID
	caches caches // last, as pin.New demands
}

const _ = -(unsafe.Sizeof(Heap{}) ^ (unsafe.Offsetof(Heap{}.caches) + unsafe.Sizeof(Heap{}.caches)))

// Init makes h ready. It takes no memory from the system.
func (h *Heap) Init(o Options) {
	arg.AtLeast("NewHeap", "MaxBytes", o.MaxBytes, 0)
	h.caches.init(&h.pages, &h.small)
	h.pages.Init(pages.Options{
		Name: o.Name, MaxBytes: o.MaxBytes, Decay: o.Decay,
		HugePages: o.HugePages, WholePages: o.WholePages, Payer: o.Payer,
	}, h.tick)
	h.small.Init(&h.pages)
	h.mapID = h.small.MapID()
	h.watch.Init((*engine)(h), &h.pages)
	h.number = registry.Add(h, owners.On())
}

// Owns reports whether b begins in this heap's memory.
func (h *Heap) Owns(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	addr := small.AddrOf(b)
	r := pages.Addresses.RegionOf(addr)
	return r != nil && atomic.LoadUint32(r.Owner(addr)) == h.pages.ID
}

// Closed reports whether Close was called.
func (h *Heap) Closed() bool { return h.pages.Closed.Load() }

// ClosedFlag returns the flag that Close sets.
func (h *Heap) ClosedFlag() *atomic.Bool { return &h.pages.Closed }

// Collect calls free unless Close has begun, and returns its result, or else false. If free returns
// true, Collect then counts the call in Stats. So what Stats counts is free. A Close waits until free
// has returned.
func (h *Heap) Collect(free func() bool) (freed bool) {
	registry.While(h.number, func() {
		if freed = free(); freed {
			h.collected.Add(1)
		}
	})
	return freed
}

// GoodSize returns the size of the block that Alloc would use for size bytes.
func (h *Heap) GoodSize(size int) int {
	if zone := watch.Zone(); size > 0 && size <= maxSize-zone {
		return h.goodSize(size+zone) - zone
	}
	return h.goodSize(size)
}

// Close gives all memory back. The blocks become inaccessible, and a later use of the heap panics.
func (h *Heap) Close() {
	h.mustBeMade("Heap.Close")
	registry.Remove(h.number) // first, so that EachOpen finds no closed heap
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if KeepsClosed && !h.Closed() {
		keepClosed(h.Stats())
	}
	if h.pages.Closed.Swap(true) {
		return
	}
	if late := h.watch.Close(); late != "" {
		defer panic(late)
	}
	h.caches.forget()
	h.small.Close()
	h.pages.Close()
	h.small.ReleaseMapID()
}

// Watch returns the watched blocks of h.
func (h *Heap) Watch() *watch.Heap { return &h.watch }
