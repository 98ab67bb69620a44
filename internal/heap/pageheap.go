// Page heap: runs of pages, and all that a heap holds of the system.
//
// The page heap hands out runs of whole pages and takes them back. It owns the
// heap's segments, its free runs, its metadata and its limit, and it gives memory
// back to the system. It knows nothing of classes and caches: the layer above
// cuts a run into blocks, or hands it out as one large block.
//
//	segment   | blocks | free run | large block | free run | blocks |
//
// Free neighbours are one run, whether their pages hold memory or not: a dirty
// bit per page says which do. What MaxBytes limits, committed, is the pages
// whose bit is set, the address tables and the metadata.
//
//	page map    first and last page of a free run: its span
//	            first page of a large block: its span
//	            every page of a run of blocks: its span
//	            else 0
//
// Pages inside free runs and large blocks have no entry, so that taking a run
// costs the same whatever its length.

package heap

import (
	"cmp"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/vm"
)

// pageHeap is the lower layer of a Heap. Its methods take mu themselves; those
// that want it held say so. None drops a lock that its caller has taken.
//
// mu guards everything from metadata on, and the spans of free runs and large
// blocks. scavenging is held by whoever gives memory back; it comes first in the
// order of locks.
//
// Invariants:
//   - committed == pageBytes * (dirty bits set in the segments) + tables + metadata.bytes
//   - tables == heldBytes * segments + tableBytes * (those of them that are charged)
//   - dirty == sum of dirty over the free runs, and leastDirty <= dirty
//   - a free run's dirty == its dirty bits set
//   - no two neighbouring runs are free
type pageHeap struct {
	id         uint32
	name       string
	maxBytes   uintptr
	hugePages  bool
	wholePages bool
	decay      time.Duration
	closed     atomic.Bool

	scavenging sync.Mutex
	alarm      alarm
	tick       func() // what the alarm calls

	_ [64]byte // mu and what it guards share no cache line with what stays as it is

	mu         sync.Mutex
	metadata   metadata
	segments   []addrRange
	total      uintptr // bytes in segments
	free       bins
	committed  uintptr // bytes
	tables     uintptr // bytes, the part of committed for the segments' tables
	dirty      uintptr // pages
	leastDirty uintptr // the lowest dirty since the last tick
	purging    uintptr // pages of the runs that purge holds, with memory
	large      largeCount
	traffic    traffic // of large blocks, and of free pages
	releases   uint8   // how often runs came back, for wakeAgain
	unmapped   list    // runs that the system left without access
	oversize   oversize
}

// largeCount counts the large blocks.
type largeCount struct {
	blocks int
	bytes  uintptr // their pages
}

// lastID is the id that the newest heap has. Ids are not used again; 2^32
// heaps in one process are not expected.
var lastID atomic.Uint32

// init makes p ready; tick is what its timer calls.
func (p *pageHeap) init(o Options, tick func()) {
	p.id = lastID.Add(1)
	p.name = cmp.Or(o.Name, "heap")
	p.maxBytes = uintptr(o.MaxBytes)
	p.hugePages, p.wholePages = o.HugePages, o.WholePages
	p.decay = cmp.Or(o.Decay, DefaultDecay)
	p.tick = tick
}

// allocRun takes a run of n pages whose address is a multiple of align, and
// reports whether it holds zeros. It has no entry in the page map yet.
func (p *pageHeap) allocRun(n, align uintptr) (s *span, zero bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, zero, err = p.take(n, align)
	if err == nil {
		p.occupy(s)
		p.wakeAgain()
	}
	return s, zero, err
}

// allocBlock takes a run for a large block of size bytes, zeroed or not.
func (p *pageHeap) allocBlock(size, align uintptr, zero bool) (*span, error) {
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

// freeRun takes back a run. Its pages stay with the heap until a purge, unless
// they are ones that do not: see discard.
func (p *pageHeap) freeRun(s *span) {
	p.mu.Lock()
	kept := p.release(s)
	p.mu.Unlock()
	p.released(s, kept)
}

// freeBlock is freeRun for a large block. It reports false if no block of
// exactly that size begins at addr.
func (p *pageHeap) freeBlock(addr, size uintptr) bool {
	p.mu.Lock()
	s := spanAt(addr)
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

// release takes a run off the page map and, if its memory is to be kept, makes
// it a free one. mu is held.
func (p *pageHeap) release(s *span) (kept bool) {
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

// released is what follows release, without mu.
func (p *pageHeap) released(s *span, kept bool) {
	if !kept {
		p.discard(s)
	}
	p.wake()
}

// publishLarge makes a run just taken a large block: it enters its first page.
// mu is held.
func (p *pageHeap) publishLarge(s *span, size uintptr, align uint8) {
	s.reset(largeRun)
	s.size, s.align = size, align
	*addresses.regionOf(s.base).page(s.base) = s
	p.large.blocks++
	p.large.bytes += s.bytes()
}

// publishSpan makes a run just taken one of blocks: it enters each of its pages.
func (p *pageHeap) publishSpan(s *span, mapID uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.kind = blockRun
	s.setMapEntries(mapID)
	s.setPages(s)
}

// unpublish takes a run in use off the page map. mu is held.
func (p *pageHeap) unpublish(s *span) {
	switch s.kind {
	case largeRun:
		p.large.blocks--
		p.large.bytes -= s.bytes()
		*addresses.regionOf(s.base).page(s.base) = nil
	case blockRun:
		s.clearMapEntries()
		s.setPages(nil)
	}
}

// take cuts a run of n pages at a multiple of align out of a free one, and
// reports whether it holds zeros. Its dirty bits say where memory was used
// before, until occupy sets them all. mu is held.
//
//	free run     | before |  s: n pages  | after |
//	                      ^ a multiple of align
func (p *pageHeap) take(n, align uintptr) (s *span, zero bool, err error) {
	if p.closed.Load() {
		return nil, false, errClosed
	}
	// The run is longer by what aligning may skip; alignments up to a page skip
	// nothing.
	align = max(align, pageBytes)
	slack := align/pageBytes - 1
	s = p.free.fit(n + slack)
	if s == nil {
		// No addresses for what the limit refuses whatever is given back.
		if err = p.mayCharge(n); err != nil {
			return nil, false, err
		}
		if s, err = p.grow(n + slack); err != nil {
			return nil, false, err
		}
	}
	r := addresses.regionOf(s.base)
	base := roundUp(s.base, align)
	dirty := r.dirty.count(r.pageIndex(base), n)
	lead := (base - s.base) / pageBytes

	// All that can fail comes before the first change.
	var before, after *span
	fail := func(err error) (*span, bool, error) {
		p.freeSpan(before)
		p.freeSpan(after)
		return nil, false, err
	}
	if lead > 0 {
		if before, err = p.newSpan(); err != nil {
			return fail(err)
		}
	}
	if s.pages > lead+n {
		if after, err = p.newSpan(); err != nil {
			return fail(err)
		}
	}
	end := base + n*pageBytes
	edges := [...]uintptr{max(base-pageBytes, s.base), base, end - pageBytes, min(end, s.end()-pageBytes)}
	tables := r.tableCost(edges[:]...)
	cost := (n-dirty)*pageBytes + tables
	if err = p.charge(cost); err != nil {
		return fail(err)
	}
	if !vm.HolesReadZero && dirty < n {
		if err = commit(base, n*pageBytes); err != nil {
			p.uncharge(cost)
			return fail(err)
		}
	}
	p.noteTables(r, tables, edges[:]...)

	// Each part's dirty pages are counted by its bits; what is left is after's.
	p.unlink(r, s)
	if before != nil {
		before.base, before.pages, before.purgeTried = s.base, lead, s.purgeTried
		before.dirty = r.dirty.count(r.pageIndex(s.base), lead)
		s.dirty -= before.dirty
		p.link(r, before)
	}
	if after != nil {
		after.base, after.pages, after.purgeTried = base+n*pageBytes, s.pages-lead-n, s.purgeTried
		after.dirty = s.dirty - dirty
		p.link(r, after)
	}
	s.base, s.pages, s.dirty, s.purgeTried = base, n, 0, false
	s.reset(takenRun)
	p.noteTaken(n, n-dirty)
	return s, dirty == 0, nil
}

// noteTaken follows each taking of n free pages, clean of them without memory.
// mu is held.
func (p *pageHeap) noteTaken(n, clean uintptr) {
	p.leastDirty = min(p.leastDirty, p.dirty)
	p.oversize.least = min(p.oversize.least, p.oversize.dirty)
	p.oversize.need(n, clean)
}

// occupy marks the pages of a run in use as holding memory. mu is held.
func (p *pageHeap) occupy(s *span) {
	r := addresses.regionOf(s.base)
	r.dirty.setRange(r.pageIndex(s.base), s.pages)
}

// nextDirty returns the first pages in [at, end) that hold memory, as positions
// in r.dirty. The pages are the caller's, but not the words that their bits
// share with others'.
func (p *pageHeap) nextDirty(r *region, at, end uintptr) (from, to uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from = r.dirty.next(r.pageIndex(at), r.pageIndex(end), true)
	return from, r.dirty.next(from, r.pageIndex(end), false)
}

// insert makes s, which has no entry in the page map, a free run, joined with
// its free neighbours. mu is held.
func (p *pageHeap) insert(s *span) {
	r := addresses.regionOf(s.base)
	s.dirty = r.dirty.count(r.pageIndex(s.base), s.pages)
	if prev := p.freeNeighbour(r, s.base-pageBytes); prev != nil {
		p.unlink(r, prev)
		s.base, s.pages = prev.base, prev.pages+s.pages
		s.dirty += prev.dirty
		s.purgeTried = s.purgeTried && (prev.purgeTried || prev.dirty == 0)
		p.freeSpan(prev)
	}
	if next := p.freeNeighbour(r, s.end()); next != nil {
		p.unlink(r, next)
		s.pages += next.pages
		s.dirty += next.dirty
		s.purgeTried = s.purgeTried && (next.purgeTried || next.dirty == 0)
		p.freeSpan(next)
	}
	p.link(r, s)
}

// freeNeighbour returns the free run that the page at addr belongs to, if it
// is this heap's. mu is held.
func (p *pageHeap) freeNeighbour(r *region, addr uintptr) *span {
	if !r.holds(addr) || atomic.LoadUint32(r.owner(addr)) != p.id {
		return nil
	}
	if s := *r.page(addr); s != nil && s.kind == freeRun {
		return s
	}
	return nil
}

// link puts a free run, whose neighbours are not free, on its bin and on the
// page map. mu is held.
func (p *pageHeap) link(r *region, s *span) {
	p.dirty += s.dirty
	if s.dirty >= oversizePages {
		p.oversize.dirty += s.dirty
		p.wakeOversize()
	}
	*r.page(s.base), *r.page(s.end() - pageBytes) = s, s
	p.free.insert(s)
	if debugging {
		p.check(r, s)
	}
}

// unlink undoes link. mu is held.
func (p *pageHeap) unlink(r *region, s *span) {
	p.dirty -= s.dirty
	if s.dirty >= oversizePages {
		p.oversize.dirty -= s.dirty
	}
	*r.page(s.base), *r.page(s.end() - pageBytes) = nil, nil
	p.free.remove(s)
}

// newSpan returns a span that describes nothing yet. mu is held.
func (p *pageHeap) newSpan() (*span, error) {
	addr, err := p.newObject(spanBytes)
	if err != nil {
		return nil, err
	}
	s := spanPtr(addr)
	s.owner = p.id
	s.reset(freeRun)
	return s, nil
}

func (p *pageHeap) freeSpan(s *span) {
	if s != nil {
		p.dropObject(s.addr(), spanBytes)
	}
}

// close gives everything back. scavenging is held.
func (p *pageHeap) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, segment := range p.segments {
		addresses.give(segment.base, segment.size)
	}
	p.closeMetadata()
	p.segments, p.free, p.unmapped, p.large = nil, bins{}, list{}, largeCount{}
	p.oversize.dirty, p.oversize.least = 0, 0
	p.total, p.committed, p.tables, p.dirty, p.leastDirty = 0, 0, 0, 0, 0
}
