// Page heap: the allocator of page runs, the lower layer of a heap.
//
// Free neighbours are always merged into one run, whether their pages hold memory or not. A
// dirty bit for each page tells whether it does:
//
//	fresh page --occupy--> dirty --purge--> clean: reads zero, takes no memory
//
// All pages of a run in use are dirty; of a free run all, some or none. MaxBytes limits
// committed, the sum of the dirty pages, the address tables and the metadata.
//
// freerun.go splits and coalesces free runs and finds one by length, pagemap.go publishes runs in
// use, segment.go gets addresses, limit.go charges for memory, purge.go gives it back, resize.go
// resizes large blocks, and metadata.go allocates the spans.

// Package pages is the page heap: it allocates and frees runs of pages.
//
// A [Heap] owns its segments of addresses, its free runs, its metadata and its limit, and
// gives memory back to the system. It knows no size classes and no caches: the layer above,
// package heap, cuts a run into blocks, or hands it out as one large block.
//
//	region    | segment | segment | ...                       of all heaps
//	segment   | blocks | free run | large block | free run |  of one heap
//
// The terms of this package:
//
//	page      8 KiB, the unit of runs
//	run       neighbouring pages
//	span      the description of a run
//	page map  from an address to the span of its run
//	dirty     of a page: it may hold memory of the system
//	purge     to give the memory of free pages back to the system
//
// # Locks
//
// Locks are taken in this order: a heap's Scavenging, its mu, then the lock of the space, of
// the metadata space or of a payer. The last three are never held together. See package
// lockrank.
package pages

import (
	"cmp"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/vm"
)

// Heap is the lower layer of package heap's Heap. Methods lock mu themselves unless their
// comment says that it is held. No method unlocks a lock of its caller.
//
// mu guards the fields from metadata on, the spans of free runs and large blocks,
// and the dirty bits of the heap's segments. Scavenging serializes the operations
// that give memory back.
//
// Invariants:
//   - committed == PageBytes * (dirty bits set in the segments) + tables + metadata.bytes
//   - tables == heldBytes * segments + tableBytes * charged segments (of SegmentBytes each)
//   - dirty == sum of dirty over the free runs, and leastDirty <= dirty
//   - a free run's dirty == its dirty bits set
//   - no two neighbouring runs are free
//
// A run just taken is charged before occupy sets its bits: in between, committed
// exceeds the first sum by its clean pages.
type Heap struct {
	ID         uint32
	Name       string
	mapsName   string // names its mappings; the kernel merges only equal names
	MaxBytes   uintptr
	Payer      Payer // nil if there is none
	HugePages  bool
	WholePages bool
	decay      time.Duration
	Closed     atomic.Bool

	Scavenging lockrank.Mutex[lockrank.Scavenging]
	Alarm      alarm
	tick       func() // the alarm's callback

	_ [64]byte // keeps mu and what it guards off the cache lines of the fixed fields

	mu         lockrank.Mutex[lockrank.Pages]
	metadata   metadata
	segments   []Range
	total      uintptr // bytes in segments
	free       bins
	committed  uintptr // bytes
	tables     uintptr // bytes, the part of committed for the segments' tables
	dirty      uintptr // pages
	leastDirty uintptr // the lowest dirty since the last tick
	large      LargeCount
	traffic    Traffic // of large blocks, and of free pages
	releases   uint8   // counts freed runs, modulo 256, for WakeAgain
	unmapped   List    // runs that are inaccessible since the system refused to map them
	watermark  uintptr // bytes: see growth.go
	placement  placement
	passed     atomic.Bool
	oversize   oversize
}

// LargeCount counts the large blocks.
type LargeCount struct {
	Blocks int
	Bytes  uintptr // their pages
}

// Traffic counts the operations of a part of a heap since its creation.
type Traffic struct {
	Allocs, Frees uint64 // blocks
	Purged        uint64 // bytes given back to the system
}

func (t *Traffic) Add(u Traffic) {
	t.Allocs += u.Allocs
	t.Frees += u.Frees
	t.Purged += u.Purged
}

// lastID is the ID of the newest heap. IDs are not reused: a process is expected to make fewer
// than 2^32 heaps.
var lastID atomic.Uint32

// unnamed counts the heaps made without a name.
var unnamed atomic.Uint32

// Options sets up a Heap. The zero value is all defaults.
type Options struct {
	Name       string
	MaxBytes   int
	Decay      time.Duration
	HugePages  bool
	WholePages bool  // freed memory goes back at once
	Payer      Payer // charged for the heap's memory, or nil
}

// Init makes p ready. Its timer calls tick.
func (p *Heap) Init(o Options, tick func()) {
	p.ID = lastID.Add(1)
	p.Name, p.mapsName = o.Name, o.Name
	if o.Name == "" {
		p.Name, p.mapsName = fmt.Sprint("heap ", unnamed.Add(1)), "heap"
	}
	p.MaxBytes, p.Payer = uintptr(o.MaxBytes), o.Payer
	p.HugePages, p.WholePages = o.HugePages, o.WholePages
	p.decay = cmp.Or(o.Decay, DefaultDecay)
	p.watermark = leastWatermark
	p.tick = tick
}

// AllocRun takes a run of n pages at a multiple of align, and reports whether it
// reads zero. The run is not in the page map yet: see PublishBlocks.
func (p *Heap) AllocRun(n, align uintptr) (s *Span, zero bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err = p.leavesSlack(n); err != nil {
		return nil, false, err
	}
	s, clean, err := p.take(n, align)
	if err != nil {
		return nil, false, err
	}
	p.occupy(s, clean)
	p.WakeAgain()
	return s, clean == n, nil
}

// AllocBlock takes a run for a large block of size bytes, and publishes it. If zero
// is set, the block reads zero.
//
// Clearing may take long, so it runs without mu. The run is already published, so no other
// goroutine takes it. Its dirty bits still tell used pages from pages that read zero; occupy
// sets the bits afterwards.
func (p *Heap) AllocBlock(size, align uintptr, zero bool) (*Span, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, clean, err := p.take(vm.RoundUp(size, PageBytes)/PageBytes, align)
	if err != nil {
		return nil, err
	}
	p.publishLarge(s, size, uint8(bits.TrailingZeros(uint(align))))
	p.traffic.Allocs++
	if zero && clean < s.pages {
		p.mu.Unlock()
		p.clearUsed(s)
		p.mu.Lock()
	}
	p.occupy(s, clean)
	return s, nil
}

// FreeRun takes back a run of blocks, or of a claimed large block. The run keeps its memory
// until a purge, except that a separate run is discarded at once; with WholePages every run is.
// After Close it is a no-op: Close has taken all runs back.
func (p *Heap) FreeRun(s *Span) {
	p.mu.Lock()
	kept := p.Closed.Load() || p.release(s)
	p.mu.Unlock()
	p.released(s, kept)
}

// FreeRuns is FreeRun for a list of runs, linked by Next from at on; 0 is the empty list.
func (p *Heap) FreeRuns(at uintptr) {
	if at == 0 {
		return
	}
	p.mu.Lock()
	for at != 0 && !p.Closed.Load() {
		s := SpanPtr(at)
		at = s.Next
		if !p.release(s) {
			p.mu.Unlock()
			p.discard(s)
			p.mu.Lock()
		}
	}
	p.mu.Unlock()
	p.Wake()
}

// FreeBlock is FreeRun for the large block of size bytes at addr. The page map led from addr to s.
// FreeBlock reports false if s has no large block of exactly size bytes at addr, or if another
// goroutine has claimed it.
func (p *Heap) FreeBlock(s *Span, addr, size uintptr) bool {
	p.mu.Lock()
	if !s.IsLarge(p.ID, addr, size) || !s.Claim(addr, size) {
		p.mu.Unlock()
		return false
	}
	p.traffic.Frees++
	kept := p.release(s)
	p.mu.Unlock()
	p.released(s, kept)
	return true
}

// release removes a run in use from the page map and makes it a free run. If the run may not
// keep its memory, release returns false: the caller must unlock mu and call released, which
// discards the run. mu is held.
func (p *Heap) release(s *Span) (kept bool) {
	p.unpublish(s)
	if p.releases++; p.releases%64 == 0 { // the clock is not read each time
		p.WakeAgain()
	}
	if s.Separate != 0 || p.WholePages {
		return false
	}
	s.reset(FreeRun)
	s.dirty = s.pages
	p.join(s)
	return true
}

// released completes a release. mu is not held.
func (p *Heap) released(s *Span, kept bool) {
	if !kept {
		p.discard(s)
	}
	p.Wake()
}

// occupy sets the dirty bits of a run in use. clean is the number of bits that are not set yet;
// take has charged for these pages. mu is held.
func (p *Heap) occupy(s *Span, clean uintptr) {
	if clean == 0 {
		return
	}
	r := Addresses.RegionOf(s.Base)
	r.dirty.SetRange(r.pageIndex(s.Base), s.pages)
}

// nextDirty returns the first dirty pages in [at, end), as positions in r.dirty.
// The caller owns the pages. It takes mu nevertheless, since the bits of other
// runs share their words.
func (p *Heap) nextDirty(r *region, at, end uintptr) (from, to uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from = r.dirty.Next(r.pageIndex(at), r.pageIndex(end), true)
	return from, r.dirty.Next(from, r.pageIndex(end), false)
}

// newSpan returns a span without a run. mu is held.
func (p *Heap) newSpan() (*Span, error) {
	addr, err := p.newObject(SpanBytes)
	if err != nil {
		return nil, err
	}
	s := SpanPtr(addr)
	s.Owner = p.ID
	s.reset(FreeRun)
	return s, nil
}

func (p *Heap) freeSpan(s *Span) {
	if s != nil {
		p.dropObject(s.Addr(), SpanBytes)
	}
}

// Figures is a snapshot of a Heap. Sizes are bytes.
type Figures struct {
	Committed uintptr // dirty pages, tables and metadata, which MaxBytes limits
	Dirty     uintptr // dirty pages of free runs
	Metadata  uintptr // tables included
	Total     uintptr // addresses in segments
	Large     LargeCount
	Traffic   Traffic // of large blocks, and of free pages
}

// Figures returns a snapshot.
func (p *Heap) Figures() Figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Figures{p.committed, p.dirty * PageBytes, p.metadata.bytes + p.tables, p.total, p.large, p.traffic}
}

// AllSegments returns the segments by address, with neighbours in one region merged.
func (p *Heap) AllSegments() []Range {
	p.mu.Lock()
	defer p.mu.Unlock()
	return joined(p.segments)
}

// Close returns all memory and addresses. Scavenging is held.
func (p *Heap) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, segment := range p.segments {
		Addresses.give(segment.Base, segment.Size)
	}
	p.closeMetadata()
	p.segments, p.free, p.unmapped, p.large = nil, bins{}, List{}, LargeCount{}
	p.oversize.dirty, p.oversize.least = 0, 0
	p.uncharge(p.committed)
	p.total, p.tables, p.dirty, p.leastDirty = 0, 0, 0, 0
}
