// Page heap: runs of pages, and everything that a heap has from the system.
//
// The page heap hands out runs of whole pages and takes them back. It owns the
// heap's segments, its free runs, its metadata and its limit, and it gives memory
// back to the system. It knows nothing of classes and caches: the layer above
// cuts a run into blocks, or hands it out as one large block.
//
//	segment   | blocks | free run | large block | free run | blocks |
//
// Free neighbours are always merged into one run, whether their pages hold memory
// or not. A dirty bit per page says which pages do:
//
//	fresh page --occupy--> dirty --purge--> clean: reads zero, takes no memory
//
// A run in use is dirty in full. A free run is dirty in full, in part or not at
// all. committed, which MaxBytes limits, is the dirty pages, the address tables
// and the metadata.
//
// The files of the page heap: freerun.go cuts and joins free runs, bins.go finds
// one by length, pagemap.go publishes runs in use, segment.go gets addresses,
// limit.go charges for memory, purge.go gives it back, resize.go resizes large
// blocks, and metadata.go has the spans.

package heap

import (
	"cmp"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// pageHeap is the lower layer of a Heap. Methods lock mu themselves unless their
// comment says that it is held. No method unlocks a lock of its caller.
//
// mu guards the fields from metadata on, the spans of free runs and large blocks,
// and the dirty bits of the heap's segments. scavenging serializes the operations
// that give memory back. It is the first in the order of locks.
//
// Invariants:
//   - committed == pageBytes * (dirty bits set in the segments) + tables + metadata.bytes
//   - tables == heldBytes * segments + tableBytes * (those of them that are charged)
//   - dirty == sum of dirty over the free runs, and leastDirty <= dirty
//   - a free run's dirty == its dirty bits set
//   - no two neighbouring runs are free, except runs that purge has off their bins
//
// A run just taken is charged before occupy sets its bits: in between, committed
// exceeds the first sum by its clean pages.
type pageHeap struct {
	id         uint32
	name       string
	mapsName   string // of its mappings: equal ones are joined
	maxBytes   uintptr
	payer      Payer // nil if there is none
	hugePages  bool
	wholePages bool
	decay      time.Duration
	closed     atomic.Bool

	scavenging sync.Mutex
	alarm      alarm
	tick       func() // what the alarm calls

	_ [64]byte // keeps mu and what it guards off the cache lines of the fixed fields

	mu         sync.Mutex
	metadata   metadata
	segments   []addrRange
	total      uintptr // bytes in segments
	free       bins
	committed  uintptr // bytes
	tables     uintptr // bytes, the part of committed for the segments' tables
	dirty      uintptr // pages
	leastDirty uintptr // the lowest dirty since the last tick
	large      largeCount
	traffic    traffic // of large blocks, and of free pages
	releases   uint8   // counts freed runs, modulo 256, for wakeAgain
	unmapped   list    // runs that are inaccessible since the system refused to map them
	oversize   oversize
}

// largeCount counts the large blocks.
type largeCount struct {
	blocks int
	bytes  uintptr // their pages
}

// traffic counts what a part of a heap has done since it was made.
type traffic struct {
	allocs, frees uint64 // blocks
	purged        uint64 // bytes given back to the system
}

func (t *traffic) add(u traffic) {
	t.allocs += u.allocs
	t.frees += u.frees
	t.purged += u.purged
}

// lastID is the id of the newest heap. Ids are not reused; a process is expected
// to make fewer than 2^32 heaps.
var lastID atomic.Uint32

// unnamed counts the heaps made without a name.
var unnamed atomic.Uint32

// pageOptions sets up a pageHeap. The zero value is all defaults.
type pageOptions struct {
	Name       string
	MaxBytes   int
	Decay      time.Duration
	HugePages  bool
	WholePages bool  // freed memory goes back at once
	Payer      Payer // is charged for the heap's memory; nil for nobody
}

// init makes p ready. Its timer calls tick.
func (p *pageHeap) init(o pageOptions, tick func()) {
	p.id = lastID.Add(1)
	p.name, p.mapsName = o.Name, o.Name
	if o.Name == "" {
		p.name, p.mapsName = fmt.Sprint("heap ", unnamed.Add(1)), "heap"
	}
	p.maxBytes, p.payer = uintptr(o.MaxBytes), o.Payer
	p.hugePages, p.wholePages = o.HugePages, o.WholePages
	p.decay = cmp.Or(o.Decay, DefaultDecay)
	p.tick = tick
}

// allocRun takes a run of n pages at a multiple of align, and reports whether it
// reads zero. The run is not in the page map yet: see publishSpan.
func (p *pageHeap) allocRun(n, align uintptr) (s *pspan, zero bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err = p.leavesSlack(n); err != nil {
		return nil, false, err
	}
	s, zero, err = p.take(n, align)
	if err == nil {
		p.occupy(s)
		p.wakeAgain()
	}
	return s, zero, err
}

// allocBlock takes a run for a large block of size bytes, and publishes it. If zero
// is set, the block reads zero.
//
// Clearing may take long, so mu is not held meanwhile. The run is published by
// then, so nobody else takes it, and its dirty bits still tell the pages that were
// used before from those that read zero. occupy sets the bits afterwards.
func (p *pageHeap) allocBlock(size, align uintptr, zero bool) (*pspan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, isZero, err := p.take(roundUp(size, pageBytes)/pageBytes, align)
	if err != nil {
		return nil, err
	}
	p.publishLarge(s, size, uint8(bits.TrailingZeros(uint(align))))
	p.traffic.allocs++
	if zero && !isZero {
		p.mu.Unlock()
		p.clearUsed(s)
		p.mu.Lock()
	}
	p.occupy(s)
	return s, nil
}

// freeRun takes back a run. It keeps its memory until a purge; a run that may not
// keep it goes to discard.
func (p *pageHeap) freeRun(s *pspan) {
	p.mu.Lock()
	kept := p.release(s)
	p.mu.Unlock()
	p.released(s, kept)
}

// freeBlock is freeRun for a large block. It reports false if no large block of
// exactly that size begins at addr. It decides that under mu: of two racing calls
// for one block, the second finds none.
func (p *pageHeap) freeBlock(addr, size uintptr) bool {
	p.mu.Lock()
	s := pspanAt(addr)
	if s == nil || !s.isLarge(p.id, addr, size) {
		p.mu.Unlock()
		return false
	}
	p.traffic.frees++
	kept := p.release(s)
	p.mu.Unlock()
	p.released(s, kept)
	return true
}

// release removes a run in use from the page map. If the run may keep its memory,
// release also makes it a free run; otherwise the caller must pass it to discard
// without mu, which released does. mu is held.
func (p *pageHeap) release(s *pspan) (kept bool) {
	p.unpublish(s)
	if p.releases++; p.releases%64 == 0 { // the clock is not read each time
		p.wakeAgain()
	}
	if s.separate != 0 || p.wholePages {
		return false
	}
	s.reset(freeRun)
	p.insert(s)
	return true
}

// released completes a release. mu is not held.
func (p *pageHeap) released(s *pspan, kept bool) {
	if !kept {
		p.discard(s)
	}
	p.wake()
}

// occupy sets the dirty bits of a run in use. take has charged for them. mu is held.
func (p *pageHeap) occupy(s *pspan) {
	r := addresses.regionOf(s.base)
	r.dirty.setRange(r.pageIndex(s.base), s.pages)
}

// nextDirty returns the first dirty pages in [at, end), as positions in r.dirty.
// The caller owns the pages. It takes mu nevertheless, since the bits of other
// runs share their words.
func (p *pageHeap) nextDirty(r *region, at, end uintptr) (from, to uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from = r.dirty.next(r.pageIndex(at), r.pageIndex(end), true)
	return from, r.dirty.next(from, r.pageIndex(end), false)
}

// newSpan returns a span without a run. mu is held.
func (p *pageHeap) newSpan() (*pspan, error) {
	addr, err := p.newObject(spanBytes)
	if err != nil {
		return nil, err
	}
	s := pspanPtr(addr)
	s.owner = p.id
	s.reset(freeRun)
	return s, nil
}

func (p *pageHeap) freeSpan(s *pspan) {
	if s != nil {
		p.dropObject(s.addr(), spanBytes)
	}
}

// figures is a snapshot of a pageHeap. Sizes are bytes.
type figures struct {
	committed uintptr // what MaxBytes limits: dirty pages, tables and metadata
	dirty     uintptr // of free runs: what holds memory
	metadata  uintptr // tables included
	total     uintptr // addresses
	large     largeCount
	traffic   traffic // of large blocks, and of free pages
}

// figures returns p's.
func (p *pageHeap) count() figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	return figures{p.committed, p.dirty * pageBytes, p.metadata.bytes + p.tables, p.total, p.large, p.traffic}
}

// allSegments returns the segments in order of address, neighbours of one region as one.
func (p *pageHeap) allSegments() []addrRange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return joined(p.segments)
}

// close returns all memory and addresses. scavenging is held.
func (p *pageHeap) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, segment := range p.segments {
		addresses.give(segment.base, segment.size)
	}
	p.closeMetadata()
	p.segments, p.free, p.unmapped, p.large = nil, bins{}, list{}, largeCount{}
	p.oversize.dirty, p.oversize.least = 0, 0
	p.uncharge(p.committed)
	p.total, p.tables, p.dirty, p.leastDirty = 0, 0, 0, 0
}
