// Heap: the general allocator.
//
//	span      | block 0 | block 1 | ... | block n | waste |   of one class
//	magazine  | head | entry 0 | entry 1 | ... |              of one class
//
// The fast paths of Alloc and Free are in leaf.go, and in assembly: see fast_amd64.go.
// Those of large blocks are in runs.go. The slow paths are in cache.go, stock.go, central.go, large.go
// and misuse.go.

// Package heap is freehold's engine: malloc and free of any size, for any
// goroutine, on runs of pages from package pages.
//
// A small block comes from a span of its class, by way of a cache; a large one
// is a run of pages, which a cache may have kept:
//
//	Alloc -> cache -> stock -> central -> span --+
//	          \                                  +-> package pages -> vm
//	           +---------- large block ----------+
//
// The terms of this package, besides those of package pages:
//
//	span      the description of a run: free, cut into blocks, or one large block
//	class     a block size; small requests are rounded up to one
//	block     what Alloc returns
//	status    two bytes per small block: its requested size, that it is free, that it is watched,
//	          or that its span was freed
//	watched   of a block: package watch has its size, and its Free and Resize
//	entry     of a magazine: a free block and the address of its status
//	map entry the word of the page map for a page of small blocks: see lookup.go
//	magazine  a stack of entries of one class
//	kept run  a freed large block's, in a cache
//	cache     a processor's magazines and kept runs
//	slot      where a processor has its cache; a call holds it while it uses that: see package pin
//	leaf      a fast path, a function that calls none and so keeps its processor
//	stock     the magazines of a class that no cache has; each group of processors has one
//	central   the spans of a class, behind the stocks
//	limbo     the statuses of freed spans that an entry may still point to
//	drain     to return what the caches hold to the spans
//	scavenge  to find what can be given back, by a timer or in Trim
//
// # Locks
//
// Package lockrank has their order. Those of a central and of stocks are taken for one class
// at a time. Caches have no lock: see package pin.
package heap

import (
	"cmp"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/watch"
)

// Options sets up a Heap. The zero value is all defaults.
type Options struct {
	Name       string
	MaxBytes   int
	Decay      time.Duration
	HugePages  bool
	WholePages bool        // every block is large, and freed memory goes back at once
	Payer      pages.Payer // is charged for the heap's memory; nil for nobody
}

// Obstacle returns "" if the fast paths of small blocks take no pins, else the reason why
// not.
func Obstacle() string {
	return cmp.Or(watch.EachBlock(), pin.Obstacle())
}

// Of returns the heap inside a *freehold.Heap, whose package sets it.
var Of func(h any) *Heap

// Heap is a general allocator. It is not ready before pin.New has made it, or an
// object that ends with it, and Init was called.
type Heap struct {
	limbo     limbo
	uncounted atomic.Int64                      // pages refused since the last count of what a drain could bring
	refused   atomic.Uint64                     // requests that found none in the end
	burst     atomic.Int64                      // bytes of the stocks: see stock.bursting
	countedAt atomic.Int64                      // when the last count was, in nanoseconds of Unix time
	drainedAt atomic.Int64                      // when the caches were drained last
	counting  lockrank.Mutex[lockrank.Counting] // held while blocks are where Stats does not look
	number    uint64                            // in registry
	ticks     uint32                            // so far
	drained   uint32                            // the tick in which the caches were last emptied
	watch     watch.Heap                        // the blocks that are watched

	pages   pages.Heap
	central [numClasses]central
	stocks  []stocks // by group of processors

	mapID  uint64           // the heap's number in page map entries, at its place there
	caches pin.Table[cache] // last, as pin.New demands
}

const _ = -(unsafe.Sizeof(Heap{}) ^ (unsafe.Offsetof(Heap{}.caches) + unsafe.Sizeof(Heap{}.caches)))

// Init makes h ready. It takes no memory.
func (h *Heap) Init(o Options) {
	arg.AtLeast("NewHeap", "MaxBytes", o.MaxBytes, 0)
	h.caches.Init(&noCache)
	h.mapID = takeMapID()
	h.pages.Init(pages.Options{
		Name: o.Name, MaxBytes: o.MaxBytes, Decay: o.Decay,
		HugePages: o.HugePages, WholePages: o.WholePages, Payer: o.Payer,
	}, h.tick)
	h.stocks = make([]stocks, numGroups())
	for i := range h.central {
		h.central[i].class = uint8(i)
		for j := range h.stocks {
			h.stocks[j][i].class = uint8(i)
		}
	}
	h.watch.Init((*engine)(h), &h.pages)
	h.number = registry.Add(h, owners.On())
}

// Alloc returns a block of size bytes at a multiple of align, zeroed or not.
func (h *Heap) Alloc(size, align int, zero bool) ([]byte, error) {
	return Fast.Alloc(h, size, align, zero, 0)
}

// Free takes back a block.
func (h *Heap) Free(b []byte) { Fast.free(h, b, 0) }

// FreePointer frees the block at p, nothing if p is nil.
func (h *Heap) FreePointer(p unsafe.Pointer) { Fast.freePointer(h, p, 0, 0, 0) }

// Resize changes a block's size where that needs no copy.
func (h *Heap) Resize(b []byte, size int) ([]byte, bool) { return h.resize("Heap.Resize", b, size) }

// resize is Resize in the name of call.
func (h *Heap) resize(call string, b []byte, size int) ([]byte, bool) {
	arg.AtLeast(call, "size", size, 0)
	if len(b) == 0 || size == 0 {
		if size == 0 {
			h.Free(b)
			return []byte{}, true
		}
		return nil, false
	}
	if spanAt(addrOf(b)).isWatched(h.pages.ID, addrOf(b)) {
		return h.watch.Resize(call, b, size)
	}
	r, ok := h.resizeBlock(call, b, size)
	if ok {
		h.watch.Resized(r)
	}
	return r, ok
}

// resizeBlock is resize of a block that is not watched, for sizes above 0.
func (h *Heap) resizeBlock(call string, b []byte, size int) ([]byte, bool) {
	addr, old := addrOf(b), uintptr(len(b))
	s := spanAt(addr)
	switch {
	case s != nil && s.IsLarge(h.pages.ID, addr, old):
		return h.resizeLarge(call, b, size)
	case s == nil || !s.isBlock(h.pages.ID, addr, old):
		h.misused(call, b)
	case uintptr(size) > s.Size || uintptr(size) <= s.Size/2:
		return nil, false
	}
	slot := h.enter()
	e := liveEntry(h, b)
	if e.addr != 0 {
		*statusAt(e.status) = uint16(size)
	}
	h.caches.Leave(slot)
	if e.addr == 0 {
		h.misused(call, b)
	}
	return block(addr, size, false), true
}

// Owns reports whether b begins in this heap's memory.
func (h *Heap) Owns(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	addr := addrOf(b)
	r := pages.Addresses.RegionOf(addr)
	return r != nil && atomic.LoadUint32(r.Owner(addr)) == h.pages.ID
}

// Closed reports whether Close was called.
func (h *Heap) Closed() bool { return h.pages.Closed.Load() }

// ClosedFlag returns the flag that Close sets.
func (h *Heap) ClosedFlag() *atomic.Bool { return &h.pages.Closed }

// GoodSize returns the size of the block that Alloc would use for size bytes.
func (h *Heap) GoodSize(size int) int {
	if zone := watch.Zone(); size > 0 && size <= maxSize-zone {
		return h.goodSize(size+zone) - zone
	}
	return h.goodSize(size)
}

// goodSize is GoodSize for blocks that nobody watches.
func (h *Heap) goodSize(size int) int {
	switch {
	case size <= 0:
		return 0
	case size <= maxSmall && !h.pages.WholePages:
		return int(classes[classOf[(size+7)/8]].size)
	case size > maxSize:
		return size
	}
	return int(pages.RoundUp(uintptr(size), pages.PageBytes))
}

// Close gives all memory back. The blocks become inaccessible, and a later use
// of the heap panics.
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
	h.caches.Clear()
	for i := range h.central {
		h.central[i].close(h)
	}
	h.pages.Close()
	giveMapID(h.mapID)
}
