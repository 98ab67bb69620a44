// Free runs: cutting one, and joining it with its neighbours.
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

package pages

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

// take cuts a run of n pages at a multiple of align out of a free run, and returns how many
// of its pages are clean. mu is held.
//
// The free run's span becomes that of the run taken; what is left in front of it
// and behind it becomes two free runs. take charges the limit for the clean pages,
// since the caller will use them. It leaves their dirty bits clear, so the caller
// knows which pages to zero, until occupy sets the bits.
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
		// Take no addresses for a request that exceeds the limit even after a purge of
		// all free pages.
		if err = p.mayCharge(n); err != nil {
			return nil, 0, err
		}
		if s, err = p.grow(n + slack); err != nil {
			return nil, 0, err
		}
	}
	r := Addresses.RegionOf(s.Base)
	base := RoundUp(s.Base, align)
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
	// The pages whose words link writes, or the caller: the last page before the run,
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

	// s.dirty is the sum over the three parts. Count two of them by their bits; after
	// has the rest. unlink comes first, as it needs the old base, pages and dirty.
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

// dirtyIn returns how many of the n pages at base, in the free run s, are dirty.
func (s *Span) dirtyIn(r *region, base, n uintptr) uintptr {
	if s.dirty == s.pages {
		return n
	}
	return r.dirty.Count(r.pageIndex(base), n)
}

// noteTaken updates the low-water marks after n free pages were taken, of which
// clean were not dirty. mu is held.
func (p *Heap) noteTaken(n, clean uintptr) {
	p.leastDirty = min(p.leastDirty, p.dirty)
	p.oversize.least = min(p.oversize.least, p.oversize.dirty)
	p.oversize.need(n, clean)
}

// insert is join of a run whose dirty pages nobody has counted. mu is held.
func (p *Heap) insert(s *Span) {
	r := Addresses.RegionOf(s.Base)
	s.dirty = r.dirty.Count(r.pageIndex(s.Base), s.pages)
	p.join(s)
}

// join makes s, which is not in the page map, a free run, and joins it with its
// free neighbours. s remains the span of the joined run. mu is held.
//
// purge may try the joined run, whatever it tried before.
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

// freeNeighbour returns the free run whose first or last page is at addr; nil if
// there is none, or it is another heap's. Segments of other heaps may be adjacent:
// the owner is checked before the word is read, which their mu guards. mu is held.
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
