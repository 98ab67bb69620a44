// Package small allocates the small blocks of a heap: those up to 32 KiB.
//
//	Magazines -> depot -> central -> Span -> package pages
//
// Free blocks are kept in magazines. Each processor has two magazines of each class in its cache.
// Each home, usually one processor, has more in its depots, one for each class. A central has the
// spans of a class, and fills magazines from them.
//
//	class     a block size, to which small requests are rounded up
//	status    two bytes of a block: its requested size, or that it is free, watched or in limbo
//	span      a run of pages cut into blocks of one class
//	page word a word of the page map, by which Free finds the status of a block
//	entry     two addresses: a free block's and its status's
//	magazine  a stack of entries of one class, for up to a batch of blocks
//	cache     what package heap keeps for a processor: its Magazines, and large blocks
//	home      a processor, or several that share depots and spans
//	depot     the magazines of a class and a home that no cache has
//	central   the spans of a class (a central free list)
//	limbo     the statuses of freed spans, kept while an entry may still point to one
//	hole      system pages inside a span, given back while all blocks in them are free
//
// # What may touch what
//
// Each file uses only the files below it:
//
//	heap.go, verify.go    all classes and depots of one heap
//	depot.go              magazines, and the spans of a central by fill and restore
//	central.go, holes.go  spans and the statuses of free blocks
//	homes.go              the list of homes
//	limbo.go              statuses of freed spans
//	magazine.go           magazines, and the statuses of blocks in them
//	span.go               statuses, page words
//	class.go              nothing
//
// Package heap owns the caches. Each is in a slot of a pin.Table, and a goroutine must not block
// while it holds a slot. So while it holds one, it calls only functions that take no lock: the
// methods of Magazines, and Live, LiveEntry, freeEntry and Resize.
//
// # Locks
//
// The lock of a depot is taken before the lock of a central, and both before the page heap's: see
// package lockrank. No call holds the locks of two classes.
package small

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
)

// Heap has the small blocks of a heap. Init makes it ready.
type Heap struct {
	pages   *pages.Heap
	mapID   uint64 // the heap's number in page words, shifted to its place there
	limbo   limbo
	extra   atomic.Int64 // bytes of the depots: see depot.extra
	homes   homes
	adding  lockrank.Mutex[lockrank.Homes] // held while a home is added, or all depots of a class are locked
	central [NumClasses]central
}

// Init makes h ready, on the pages of p. It allocates nothing from p.
func (h *Heap) Init(p *pages.Heap) {
	h.pages = p
	h.mapID = newMapID()
	h.homes = make(homes, numHomes())
	for i := range h.central {
		h.central[i].class = uint8(i)
		h.central[i].homes = h.homes
	}
}

// Close forgets all blocks. The page heap then frees their memory.
func (h *Heap) Close() {
	for i := range h.central {
		class := uint8(i)
		h.lockDepots(class)
		for _, x := range h.homes.all {
			x.depots[class].forget()
		}
		h.central[i].close()
		h.unlockDepots(class)
	}
	h.extra.Store(0)
	h.limbo.bytes.Store(0)
	h.limbo.due.Store(false)
}

// MapID returns the heap's number in page words, for PageWord.
func (h *Heap) MapID() uint64 { return h.mapID }

// ReleaseMapID makes the number available to other heaps. The page heap is closed, so no page word
// has the number.
func (h *Heap) ReleaseMapID() { releaseMapID(h.mapID) }

// Flush returns the blocks in c to their spans, frees the magazines, and clears c. A drain has
// taken c out of its slot.
func (h *Heap) Flush(c *Magazines) {
	for i := range c.tops {
		class := uint8(i)
		for _, m := range [...]*magazine{c.loaded(class), c.spare(class)} {
			if m != nil {
				h.central[class].restore(h, m.entries(m.n))
				h.freeMagazine(class, m)
			}
		}
	}
	c.Clear()
}

// Shrink returns the blocks of all depots to their spans, and frees the empty spans and limbo. A
// drain calls it once no cache has an entry.
func (h *Heap) Shrink() {
	for i := range h.central {
		h.shrink(uint8(i), true)
	}
}

// ShrinkDepots is Shrink while caches have entries. It keeps limbo.
func (h *Heap) ShrinkDepots() {
	for i := range h.central {
		h.shrink(uint8(i), false)
	}
}

// shrink is Shrink for one class. Unless drained is set, a cache may have an entry, so limbo is
// kept.
func (h *Heap) shrink(class uint8, drained bool) {
	h.lockDepots(class)
	defer h.unlockDepots(class)
	for _, x := range h.homes.all {
		x.depots[class].clear(h)
	}
	c := &h.central[class]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shrink(h)
	if drained {
		c.freeLimbo(h)
	}
}

// Tick gives back memory that was not used since the last Tick, and reports whether a depot has
// moved a block since. Each class returns the blocks of magazines that no cache has taken, because
// one of them may be the last block out of its span. An idle class also returns all other blocks in
// its depots, frees its empty spans and makes holes in the others. Scavenging is held.
func (h *Heap) Tick() (busy bool) {
	for i := range h.central {
		if h.tick(uint8(i)) {
			busy = true
		}
	}
	return busy
}

// tick is Tick for one class.
func (h *Heap) tick(class uint8) (used bool) {
	for _, x := range h.homes.all {
		used = x.depots[class].tick(h) || used
	}
	c := &h.central[class]
	c.mu.Lock()
	c.rested = c.rested && !used
	idle := !used && !c.rested
	c.mu.Unlock()
	if idle {
		h.shrink(class, false)
		c.punch(h)
	}
	return used
}

// Holding counts the blocks and spans of one class. Live, Cached and Free are blocks.
type Holding struct {
	Live       int
	Cached     int // free, in caches and depots
	Free       int // free, in spans
	Spans      int
	EmptySpans int // in which all blocks are free
	Holes      int // bytes of free blocks given back to the system
	pages.Traffic
}

// Holding counts the blocks and spans of a class. cached is the number of its blocks in caches.
func (h *Heap) Holding(class uint8, cached int) (n Holding) {
	h.lockDepots(class)
	defer h.unlockDepots(class)
	for _, x := range h.homes.all {
		d := &x.depots[class]
		cached += int(d.stocked.blocks)
		n.Allocs += d.allocs
		n.Frees += d.frees
	}
	c := &h.central[class]
	c.mu.Lock()
	defer c.mu.Unlock()
	n.Cached = min(cached, c.out)
	n.Live, n.Free = c.out-n.Cached, c.spans*int(classes[class].blocks)-c.out
	n.Spans, n.EmptySpans, n.Holes, n.Purged = c.spans, c.emptySpans, c.holes, c.purged
	return n
}

// Calls returns the number of calls of AllocFromDepot, and of FreeToDepot with a live block, so
// far. It takes no lock, so it may miss calls in progress. On systems of 32 bits it may be wrong
// for a moment.
//
//go:norace
func (h *Heap) Calls() (n uint64) {
	for i := range h.homes { // the body of a range over all would be a function, which is not norace
		if x := h.homes[i].Load(); x != nil {
			for j := range x.depots {
				d := &x.depots[j]
				n += d.allocs + d.frees
			}
		}
	}
	return n
}

// EachBlock calls f with each live block of the span at addr. It calls f for nothing if no span of
// the class is there any more. The size of a watched block is the class's. Other goroutines may
// allocate and free blocks meanwhile. EachBlock holds the central's lock, so no span of the class
// is freed.
func (h *Heap) EachBlock(class uint8, addr uintptr, f func(block, size uintptr, watched bool)) {
	c := &h.central[class]
	c.mu.Lock()
	defer c.mu.Unlock()
	var s *Span
	h.pages.Look(addr, func(run *pages.Span) {
		if in := SpanOf(run); in.Kind == pages.BlockRun && in.class == class && in.Owner == h.pages.ID {
			s = in
		}
	})
	if s == nil {
		return // it was freed in the meantime
	}
	for i := range classes[class].blocks {
		if size, watched := s.liveSize(i); size > 0 {
			f(s.Base+i*s.Size, size, watched)
		}
	}
}

// liveSize returns the size of block i if it is live, or else 0. Only package watch knows the size
// of a watched block, so liveSize returns the class's. Other goroutines may write the status
// meanwhile.
//
//go:norace
func (s *Span) liveSize(i uintptr) (size uintptr, watched bool) {
	switch st := *StatusAt(s.statusOf(i)); {
	case st <= MaxSize:
		return uintptr(st), false
	case st == Watched:
		return s.Size, true
	}
	return 0, false
}
