// Free runs: splitting and coalescing, with boundary tags.
//
// The page map has the span of a free run at its first and last page, the boundary
// tags of the run. So insert finds both free neighbours of a run in constant time,
// and the pages inside a free run need no words.
//
//	take      |         free run          |
//	          | before |  s     |  after  |     before and after get new spans
//
//	insert    | prev   |  s     |  next   |     the spans of prev and next are freed
//	          |         free run          |
//
// # Bins
//
// There is one bin per length up to 64 pages, then eight bins per doubling:
//
//	bin     0   1   ...  63   64     65     ...  71       72       ...
//	pages   1   2   ...  64   65-71  72-79  ...  120-127  128-143  ...
//
// A request takes the best fit of the first few runs of its own bin, else the first
// run of the next bin that has one: every run there is long enough. This good fit
// bounds the search and keeps long runs whole for long requests. It is not exact:
// in a bin of several lengths it may miss a run that fits behind the first few.
// (Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems",
// ECRTS 2004.)

package pages

import (
	"math/bits"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

// take cuts a run of n pages at a multiple of align out of a free run. It also returns the
// number of its clean pages. mu is held.
//
// The taken run keeps the free run's span. The pages left in front and behind become two new
// free runs. take charges the limit for the clean pages, since the caller will use them. Their
// dirty bits stay clear until occupy sets them, so the caller knows which pages to zero.
//
// On an error no run has changed. A new segment stays, as a free run.
func (p *Heap) take(n, align uintptr) (s *Span, clean uintptr, err error) {
	if p.Closed.Load() {
		return nil, 0, ErrClosed
	}
	// Any run of n+slack pages has n pages at a multiple of align. Alignments up to a
	// page need no slack.
	align = max(align, PageBytes)
	slack := align/PageBytes - 1
	s = p.free.fit(n + slack)
	if s == nil {
		// Take no addresses if the limit refuses the request even after a purge of all
		// free pages.
		if err = p.mayCharge(n); err != nil {
			return nil, 0, err
		}
		if s, err = p.grow(n + slack); err != nil {
			return nil, 0, err
		}
	}
	r := Addresses.RegionOf(s.Base)
	base := vm.RoundUp(s.Base, align)
	dirty := s.dirtyIn(r, base, n)
	lead := (base - s.Base) / PageBytes

	// Everything that can fail comes before the first change to a run.
	var before, after *Span
	fail := func(err error) (*Span, uintptr, error) {
		p.freeSpan(before)
		p.freeSpan(after)
		return nil, 0, err
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
	// link and the caller write the words of these pages: the last page before the run,
	// its first, its last, and the first page behind it.
	end := base + n*PageBytes
	edges := [...]uintptr{max(base-PageBytes, s.Base), base, end - PageBytes, min(end, s.End()-PageBytes)}
	tables := r.tableCost(edges[:]...)
	cost := (n-dirty)*PageBytes + tables
	if err = p.charge(cost); err != nil {
		return fail(err)
	}
	if !vm.HolesReadZero && dirty < n {
		if err = Commit(base, n*PageBytes); err != nil {
			p.uncharge(cost)
			return fail(err)
		}
	}
	p.noteTables(r, tables, edges[:]...)

	// s.dirty is the sum over the three parts. The bits give two of them, the difference gives
	// after's. unlink comes first: it needs the old base, pages and dirty.
	p.unlink(r, s)
	if before != nil {
		before.Base, before.pages, before.purgeTried = s.Base, lead, s.purgeTried
		before.dirty = s.dirtyIn(r, s.Base, lead)
		s.dirty -= before.dirty
		p.link(r, before)
	}
	if after != nil {
		after.Base, after.pages, after.purgeTried = base+n*PageBytes, s.pages-lead-n, s.purgeTried
		after.dirty = s.dirty - dirty
		p.link(r, after)
	}
	s.Base, s.pages, s.dirty, s.purgeTried = base, n, 0, false
	s.reset(takenRun)
	p.noteTaken(n, n-dirty)
	return s, n - dirty, nil
}

// dirtyIn returns the number of dirty pages among the n pages at base, inside the free run s.
func (s *Span) dirtyIn(r *region, base, n uintptr) uintptr {
	if s.dirty == s.pages {
		return n
	}
	return r.dirty.Count(r.pageIndex(base), n)
}

// noteTaken updates the low-water marks after n free pages were taken. clean is the number of these
// that had no memory. mu is held.
func (p *Heap) noteTaken(n, clean uintptr) {
	p.leastDirty = min(p.leastDirty, p.dirty)
	p.oversize.least = min(p.oversize.least, p.oversize.dirty)
	p.oversize.need(n, clean)
}

// insert counts the dirty pages of s and joins it. mu is held.
func (p *Heap) insert(s *Span) {
	r := Addresses.RegionOf(s.Base)
	s.dirty = r.dirty.Count(r.pageIndex(s.Base), s.pages)
	p.join(s)
}

// join makes s a free run and coalesces it with its free neighbours. s is not in the page map.
// It remains the span of the joined run, which purge may try even if it has tried a part. mu is
// held.
func (p *Heap) join(s *Span) {
	r := Addresses.RegionOf(s.Base)
	if prev := p.freeNeighbour(r, s.Base-PageBytes); prev != nil {
		p.unlink(r, prev)
		s.Base, s.pages = prev.Base, prev.pages+s.pages
		s.dirty += prev.dirty
		p.freeSpan(prev)
	}
	if next := p.freeNeighbour(r, s.End()); next != nil {
		p.unlink(r, next)
		s.pages += next.pages
		s.dirty += next.dirty
		p.freeSpan(next)
	}
	p.link(r, s)
}

// freeNeighbour returns this heap's free run whose first or last page is at addr, or nil. The
// next segment may be another heap's, whose mu guards its words, so it checks the owner before
// it reads the word. mu is held.
func (p *Heap) freeNeighbour(r *region, addr uintptr) *Span {
	if !r.Holds(addr) || atomic.LoadUint32(r.Owner(addr)) != p.ID {
		return nil
	}
	if s := *r.page(addr); s != nil && s.Kind == FreeRun {
		return s
	}
	return nil
}

// link puts a free run on its bin and into the page map. Its neighbours must not be
// free. mu is held.
func (p *Heap) link(r *region, s *Span) {
	p.dirty += s.dirty
	if s.dirty >= oversizePages {
		p.oversize.dirty += s.dirty
		p.wakeOversize()
	}
	*r.page(s.Base), *r.page(s.End() - PageBytes) = s, s
	p.free.insert(s)
}

// unlink undoes link. mu is held.
func (p *Heap) unlink(r *region, s *Span) {
	p.dirty -= s.dirty
	p.oversize.dirty -= oversizePart(s.dirty)
	*r.page(s.Base), *r.page(s.End() - PageBytes) = nil, nil
	p.free.remove(s)
}

const (
	exactBins = 64
	numBins   = exactBins + 8*(bits.UintSize-PageShift-6)
	binSearch = 16 // runs of its own bin that a request compares
)

// bins holds the free runs of a page heap.
//
// Invariants:
//   - bit i of filled is set if and only if bin i holds a run
//   - in each bin, runs with memory that purge has not tried come before the others
type bins struct {
	lists  [numBins]List
	filled [(numBins + 63) / 64]uint64
}

// bin returns the bin of a run of n pages.
func bin(n uintptr) int {
	if n <= exactBins {
		return int(n) - 1
	}
	top := bits.Len(uint(n)) - 1
	return exactBins + (top-6)*8 + int(n>>(top-3)&7)
}

// insert adds s. Dirty runs that purge has not tried go to the front: fit prefers them, since
// their pages are resident, and dirtyRun stops at the first run of another kind.
func (b *bins) insert(s *Span) {
	i := bin(s.pages)
	if s.dirty > 0 && !s.purgeTried {
		b.lists[i].Push(s)
	} else {
		b.lists[i].PushBack(s)
	}
	b.filled[i/64] |= 1 << (i % 64)
}

func (b *bins) remove(s *Span) {
	i := bin(s.pages)
	b.lists[i].Remove(s)
	if b.lists[i].Head == 0 {
		b.filled[i/64] &^= 1 << (i % 64)
	}
}

// fit returns a run of at least n pages, or nil.
func (b *bins) fit(n uintptr) *Span {
	// Best fit among the first runs of the bin. Some of them may be too short.
	i := bin(n)
	var best *Span
	for j, at := 0, b.lists[i].Head; at != 0 && j < binSearch; j++ {
		s := SpanPtr(at)
		if s.pages >= n && (best == nil || s.pages < best.pages) {
			if best = s; s.pages == n {
				break
			}
		}
		at = s.Next
	}
	if best != nil {
		return best
	}
	// The next bin that holds a run, by the bitmap.
	for w := (i + 1) / 64; w < len(b.filled); w++ {
		filled := b.filled[w]
		if w == (i+1)/64 {
			filled &= ^uint64(0) << ((i + 1) % 64)
		}
		if filled != 0 {
			return SpanPtr(b.lists[w*64+bits.TrailingZeros64(filled)].Head)
		}
	}
	return nil
}

// below returns the last bin before i that holds a run, or -1.
func (b *bins) below(i int) int {
	for i > 0 {
		w := (i - 1) / 64
		if filled := b.filled[w] << (63 - (i-1)%64); filled != 0 {
			return i - 1 - bits.LeadingZeros64(filled)
		}
		i = w * 64
	}
	return -1
}

// retryPurge makes purge try again the runs that a purge left dirty.
func (b *bins) retryPurge() {
	for i := range b.lists {
		l := &b.lists[i]
		for at := l.Head; at != 0; {
			s := SpanPtr(at)
			at = s.Next
			if s.purgeTried && s.dirty > 0 {
				s.purgeTried = false
				l.Remove(s)
				l.Push(s)
			}
		}
	}
}
