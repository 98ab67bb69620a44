// Runs: how a heap finds, splits, joins and gives back runs of pages.
//
// Free runs stand in bins by their length: one bin per length up to 64 pages,
// then eight bins per doubling. A request takes the best fit of the first few
// runs in its own bin, else any run of the next bin that has one, so the search
// is short and large runs are not broken for small requests. (The bins are
// those of TLSF: Masmano et al., "TLSF: a new dynamic memory allocator for
// real-time systems", ECRTS 2004.)
//
// Neighbours that are free are one run, whether their pages hold memory or
// not: a bit per page says which do. What MaxBytes limits, committed, is the
// pages whose bit is set, the address tables and the metadata.
//
//	page word   first and last page of a free run: its span
//	            first page of a large block: its span
//	            every page of a run of blocks: its span
//	            else 0
//
// The words of pages inside free runs and large blocks are 0, so taking a run
// costs the same whatever its length.

package heap

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	exactBins = 64
	numBins   = exactBins + 8*(bits.UintSize-pageShift-6)
	binSearch = 16 // runs of a bin that are compared

	maxSegmentBytes = 64 << 20
)

// runs is a heap's free memory. The heap's mu guards it.
//
// Invariants:
//   - committed == pageBytes * (dirty bits set in the heap's segments) + tables + meta.bytes
//   - tables == heldBytes * segments + tableBytes * (those of them that are charged)
//   - dirty == sum of dirty over the free runs, and leastDirty <= dirty
//   - a free run's dirty == its dirty bits set
//   - no two neighbouring runs are free
type runs struct {
	segments   []addrRange
	total      uintptr // bytes in segments
	bins       [numBins]list
	filled     [(numBins + 63) / 64]uint64 // bins that hold a run
	committed  uintptr                     // bytes
	tables     uintptr                     // bytes, the part of committed for the segments' tables
	dirty      uintptr                     // pages
	leastDirty uintptr                     // the lowest dirty since the last tick
	purging    uintptr                     // pages of the runs that purge holds, with memory
	oversize   oversize
}

// bin returns the bin that a free run of n pages stands in.
func bin(n uintptr) int {
	if n <= exactBins {
		return int(n) - 1
	}
	top := bits.Len(uint(n)) - 1
	return exactBins + (top-6)*8 + int(n>>(top-3)&7)
}

// fit returns a free run of at least n pages, nil if there is none.
func (r *runs) fit(n uintptr) *span {
	b := bin(n)
	var best *span
	for i, at := 0, r.bins[b].head; at != 0 && i < binSearch; i++ {
		s := spanPtr(at)
		if s.pages >= n && (best == nil || s.pages < best.pages) {
			if best = s; s.pages == n {
				break
			}
		}
		at = s.next
	}
	if best != nil {
		return best
	}
	for w := (b + 1) / 64; w < len(r.filled); w++ {
		filled := r.filled[w]
		if w == (b+1)/64 {
			filled &= ^uint64(0) << ((b + 1) % 64)
		}
		if filled != 0 {
			return spanPtr(r.bins[w*64+bits.TrailingZeros64(filled)].head)
		}
	}
	return nil
}

// charge counts n bytes about to be committed against the limit.
func (h *Heap) charge(n uintptr) error {
	if h.maxBytes != 0 && n > h.maxBytes-h.runs.committed {
		return limitError{h.name, n, h.maxBytes}
	}
	h.runs.committed += n
	return nil
}

// mayCharge reports whether n pages could be charged if all free ones were given
// back.
func (h *Heap) mayCharge(n uintptr) error {
	if kept := h.runs.committed - h.runs.dirty*pageBytes; h.maxBytes != 0 && n*pageBytes > h.maxBytes-kept {
		return limitError{h.name, n * pageBytes, h.maxBytes}
	}
	return nil
}

func (h *Heap) uncharge(n uintptr) { h.runs.committed -= n }

// limitError says that a limit was reached; it matches ErrOutOfMemory.
type limitError struct {
	heap string
	n    uintptr
	max  uintptr
}

func (e limitError) Error() string {
	return fmt.Sprintf("%v: heap %q: %d bytes more would pass the limit of %d", ErrOutOfMemory, e.heap, e.n, e.max)
}

func (e limitError) Unwrap() error { return ErrOutOfMemory }

// newRun takes a run of n pages whose address is a multiple of align, and
// reports whether it holds zeros. Its page words are 0. Its dirty bits say where
// memory was used before, until occupy sets them all. h.mu is held.
func (h *Heap) newRun(n, align uintptr) (s *span, zero bool, err error) {
	if h.closed.Load() {
		return nil, false, errClosed
	}
	// What is taken to align is cut off again; alignments up to a page are free.
	align = max(align, pageBytes)
	slack := align/pageBytes - 1
	s = h.runs.fit(n + slack)
	if s == nil {
		// No addresses for what the limit refuses whatever is given back.
		if err = h.mayCharge(n); err != nil {
			return nil, false, err
		}
		if s, err = h.grow(n + slack); err != nil {
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
		h.freeSpan(before)
		h.freeSpan(after)
		return nil, false, err
	}
	if lead > 0 {
		if before, err = h.newSpan(); err != nil {
			return fail(err)
		}
	}
	if s.pages > lead+n {
		if after, err = h.newSpan(); err != nil {
			return fail(err)
		}
	}
	end := base + n*pageBytes
	edges := [...]uintptr{max(base-pageBytes, s.base), base, end - pageBytes, min(end, s.end()-pageBytes)}
	tables := r.tableCost(edges[:]...)
	cost := (n-dirty)*pageBytes + tables
	if err = h.charge(cost); err != nil {
		return fail(err)
	}
	if !vm.HolesReadZero && dirty < n {
		if err = commit(base, n*pageBytes); err != nil {
			h.uncharge(cost)
			return fail(err)
		}
	}
	h.noteTables(r, tables, edges[:]...)

	h.removeFree(r, s)
	if before != nil {
		before.base, before.pages, before.settled = s.base, lead, s.settled
		before.dirty = r.dirty.count(r.pageIndex(s.base), lead)
		s.dirty -= before.dirty
		h.addFree(r, before)
	}
	if after != nil {
		after.base, after.pages, after.settled = base+n*pageBytes, s.pages-lead-n, s.settled
		after.dirty = s.dirty - dirty
		h.addFree(r, after)
	}
	s.base, s.pages, s.dirty, s.settled = base, n, 0, false
	h.noteTaken(n, n-dirty)
	return s, dirty == 0, nil
}

// noteTaken follows each taking of n free pages, clean of them without memory.
func (h *Heap) noteTaken(n, clean uintptr) {
	r := &h.runs
	r.leastDirty = min(r.leastDirty, r.dirty)
	r.oversize.least = min(r.oversize.least, r.oversize.dirty)
	r.oversize.need(n, clean)
}

// occupy marks the pages of a run in use as holding memory. h.mu is held.
func (h *Heap) occupy(s *span) {
	r := addresses.regionOf(s.base)
	r.dirty.setRange(r.pageIndex(s.base), s.pages)
}

// nextDirty returns the first pages in [at, end) that hold memory, as positions
// in r.dirty. h.mu is not held; the pages are the caller's, but not the words
// that their bits share with others'.
func (h *Heap) nextDirty(r *region, at, end uintptr) (from, to uintptr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from = r.dirty.next(r.pageIndex(at), r.pageIndex(end), true)
	return from, r.dirty.next(from, r.pageIndex(end), false)
}

// newSpan returns a span that describes nothing yet.
func (h *Heap) newSpan() (*span, error) {
	addr, err := h.newObject(spanBytes)
	if err != nil {
		return nil, err
	}
	s := spanPtr(addr)
	s.owner = h.id
	s.whole(freeRun)
	return s, nil
}

func (h *Heap) freeSpan(s *span) {
	if s != nil {
		h.freeObject(s.addr(), spanBytes)
	}
}

// addFree puts s, whose neighbours are not free, on its bin: in front if there
// is memory to give back in it, since that is also the memory to use first.
func (h *Heap) addFree(r *region, s *span) {
	h.runs.dirty += s.dirty
	if s.dirty >= oversizePages {
		h.runs.oversize.dirty += s.dirty
		h.wakeOversize()
	}
	*r.page(s.base), *r.page(s.end() - pageBytes) = s, s
	b := bin(s.pages)
	if s.dirty > 0 && !s.settled {
		h.runs.bins[b].push(s)
	} else {
		h.runs.bins[b].pushBack(s)
	}
	h.runs.filled[b/64] |= 1 << (b % 64)
}

// removeFree takes s off its bin and clears its page words.
func (h *Heap) removeFree(r *region, s *span) {
	h.runs.dirty -= s.dirty
	if s.dirty >= oversizePages {
		h.runs.oversize.dirty -= s.dirty
	}
	*r.page(s.base), *r.page(s.end() - pageBytes) = nil, nil
	b := bin(s.pages)
	h.runs.bins[b].remove(s)
	if h.runs.bins[b].head == 0 {
		h.runs.filled[b/64] &^= 1 << (b % 64)
	}
}

// freeRun makes s a free run, joined with its free neighbours. Its page words
// are 0. h.mu is held.
func (h *Heap) freeRun(s *span) {
	r := addresses.regionOf(s.base)
	s.dirty = r.dirty.count(r.pageIndex(s.base), s.pages)
	if prev := h.freeNeighbour(r, s.base-pageBytes); prev != nil {
		h.removeFree(r, prev)
		s.base, s.pages = prev.base, prev.pages+s.pages
		s.dirty += prev.dirty
		s.settled = s.settled && (prev.settled || prev.dirty == 0)
		h.freeSpan(prev)
	}
	if next := h.freeNeighbour(r, s.end()); next != nil {
		h.removeFree(r, next)
		s.pages += next.pages
		s.dirty += next.dirty
		s.settled = s.settled && (next.settled || next.dirty == 0)
		h.freeSpan(next)
	}
	h.addFree(r, s)
}

// freeNeighbour returns the free run that the page at addr belongs to, if it
// is this heap's.
func (h *Heap) freeNeighbour(r *region, addr uintptr) *span {
	if addr-r.base >= r.used.Load() || atomic.LoadUint32(r.owner(addr)) != h.id {
		return nil
	}
	if s := *r.page(addr); s != nil && s.kind == freeRun {
		return s
	}
	return nil
}

// grow takes a segment with room for n pages and returns the free run that it
// is part of. h.mu is held.
func (h *Heap) grow(n uintptr) (*span, error) {
	return h.addSegment(n, func(size uintptr) (uintptr, error) { return addresses.take(size, h.id) })
}

// growAt is grow for the addresses from at on, if nobody had them yet.
func (h *Heap) growAt(at, n uintptr) error {
	_, err := h.addSegment(n, func(size uintptr) (uintptr, error) { return at, addresses.takeAt(at, size, h.id) })
	return err
}

// addSegment adds a segment with room for n pages. Segments double, up to
// maxSegmentBytes.
func (h *Heap) addSegment(n uintptr, take func(size uintptr) (uintptr, error)) (*span, error) {
	need := roundUp(n*pageBytes, segmentBytes)
	size := max(need, min(h.runs.total, maxSegmentBytes))
	s, err := h.newSpan()
	if err != nil {
		return nil, err
	}
	addr, err := h.openSegment(size, take)
	if err != nil && size > need {
		size = need
		addr, err = h.openSegment(size, take)
	}
	if err != nil {
		h.freeSpan(s)
		return nil, err
	}
	// What the system kept of a closed heap's memory counts from here on.
	r := addresses.regionOf(addr)
	edges := [...]uintptr{addr, addr + size - pageBytes}
	tables := size/segmentBytes*heldBytes + r.tableCost(edges[:]...)
	if err := h.charge(r.dirty.count(r.pageIndex(addr), size/pageBytes)*pageBytes + tables); err != nil {
		addresses.give(addr, size)
		h.freeSpan(s)
		return nil, err
	}
	h.noteTables(r, tables, edges[:]...)
	h.runs.segments = append(h.runs.segments, addrRange{addr, size})
	h.runs.total += size
	s.base, s.pages = addr, size/pageBytes
	h.freeRun(s)
	return s, nil
}

// openSegment takes a segment and sets it up. Its memory is accessible where
// the system gives out memory at the first touch.
func (h *Heap) openSegment(size uintptr, take func(size uintptr) (uintptr, error)) (uintptr, error) {
	addr, err := take(size)
	if err != nil {
		return 0, err
	}
	if vm.HolesReadZero {
		if err := vm.Commit(addr, size); err != nil {
			addresses.give(addr, size)
			return 0, err
		}
	}
	if h.hugePages {
		vm.Advise(addr, size, vm.HugePages) // best effort
	}
	vm.Name(addr, size, h.name)
	return addr, nil
}

// purgeBatch bounds what purge keeps from everybody else at a time.
const (
	purgeBatchRuns  = 64
	purgeBatchPages = 64 << 20 / pageBytes
)

// purge gives the memory of up to n free pages back to the system, the longest
// runs first. h.tending is held.
func (h *Heap) purge(n uintptr) { h.purgeRuns(n, 1) }

// purgeRuns is purge of runs with at least minDirty pages of memory, and returns
// how many pages went. Runs are off their bins, and mu is not held, while the
// system works on them.
func (h *Heap) purgeRuns(n, minDirty uintptr) (purged uintptr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n > 0 {
		batch, pages := h.takeDirty(min(n, purgeBatchPages), minDirty)
		if pages == 0 {
			break
		}
		keep := pages - min(n, pages) // of the run taken last
		n -= min(n, pages)
		h.noteTaken(0, 0)
		h.runs.purging = pages
		h.mu.Unlock()
		for at := batch.head; at != 0; at = spanPtr(at).next {
			s := spanPtr(at)
			if at != batch.head {
				keep = 0
			}
			s.settled = keep == 0
			h.purgeRun(s, keep)
		}
		h.mu.Lock()
		h.runs.purging = 0
		for batch.head != 0 {
			s := spanPtr(batch.head)
			batch.remove(s)
			r := addresses.regionOf(s.base)
			left := r.dirty.count(r.pageIndex(s.base), s.pages)
			h.uncharge((s.dirty - left) * pageBytes)
			purged += s.dirty - left
			h.freeRun(s)
			h.dropTables(s)
		}
	}
	return purged
}

// takeDirty takes free runs with at least n pages of memory together, and
// minDirty each, or as many as a batch may have, off their bins.
func (h *Heap) takeDirty(n, minDirty uintptr) (batch list, pages uintptr) {
	runs := 0
	for b := h.runs.filledBelow(numBins); b >= bin(minDirty); b = h.runs.filledBelow(b) {
		for at := h.runs.bins[b].head; at != 0; {
			s := spanPtr(at)
			if s.dirty == 0 || s.settled {
				break
			}
			if at = s.next; s.dirty < minDirty {
				continue
			}
			h.removeFree(addresses.regionOf(s.base), s)
			batch.push(s)
			pages += s.dirty
			if runs++; runs == purgeBatchRuns || pages >= n {
				return batch, pages
			}
		}
	}
	return batch, pages
}

// filledBelow returns the last bin below b that holds a run, -1 if there is none.
func (r *runs) filledBelow(b int) int {
	for b > 0 {
		w := (b - 1) / 64
		if filled := r.filled[w] << (63 - (b-1)%64); filled != 0 {
			return b - 1 - bits.LeadingZeros64(filled)
		}
		b = w * 64
	}
	return -1
}

// unsettle has the runs that were purged, but not wholly, tried again.
func (h *Heap) unsettle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for b := range h.runs.bins {
		l := &h.runs.bins[b]
		for at := l.head; at != 0; {
			s := spanPtr(at)
			at = s.next
			if s.settled && s.dirty > 0 {
				s.settled = false
				l.remove(s)
				l.push(s)
			}
		}
	}
}

// purgeRun decommits the pages of s that hold memory, but for the first keep of
// them: with huge pages only whole ones, since less would split them. What the
// system refuses stays.
func (h *Heap) purgeRun(s *span, keep uintptr) {
	r := addresses.regionOf(s.base)
	unit := max(vm.PageBytes(), pageBytes)
	if h.hugePages {
		unit = vm.HugePageBytes
	}
	for at, end := s.base, s.end(); at < end; {
		from, to := h.nextDirty(r, at, end)
		at = r.base + to*pageBytes
		kept := min(keep, to-from)
		keep -= kept
		if kept == to-from {
			continue
		}
		// Whole units, with clean pages of the run that share one.
		low := max(roundUp(s.base, unit), (r.base+(from+kept)*pageBytes)&^(unit-1))
		high := min(end&^(unit-1), roundUp(at, unit))
		if low < high && vm.Decommit(low, high-low) == nil {
			h.mu.Lock()
			r.dirty.clearRange(r.pageIndex(low), (high-low)/pageBytes)
			h.mu.Unlock()
		}
	}
}
