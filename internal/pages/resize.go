// Resize: how a large block grows and shrinks.
//
// A block shrinks in place: its tail is cut off and freed. It grows in place if the
// pages behind it are free or were never handed out. Otherwise, if it is longer than
// copyBytes and the system supports it, its pages are moved to a longer run without a copy.

package pages

import (
	"errors"

	"github.com/freehold-go/freehold/internal/vm"
)

// Blocks up to copyBytes are copied, not moved. A run whose pages were moved away is mapped
// anew when it is freed, so each page of the next block there costs a fault. That takes longer
// than a copy, which leaves the old run resident.
const copyBytes = 8 << 20

// ResizeBlock resizes the large block of old bytes at addr to size bytes. The page map led from
// addr to s. It returns the block's span, a new one if the pages were moved, or nil if the caller
// must copy. It reports false if s has no such block: another goroutine may have freed or resized
// it since the caller looked.
func (p *Heap) ResizeBlock(s *Span, addr, old, size uintptr) (at *Span, live bool) {
	tail, kept, live, done := p.resizeInPlace(s, addr, old, size)
	switch {
	case !live:
		return nil, false
	case !done:
		to := p.move(s, size)
		if to == nil {
			s.Unclaim(old)
		}
		return to, true
	case tail != nil:
		p.released(tail, kept)
	}
	return s, true
}

// resizeInPlace is ResizeBlock without a move. live is false if there is no such block. tail is the
// run that was cut off, or nil; kept is release's result for it. If done is false, the block has
// its old size and is still claimed, for a move.
func (p *Heap) resizeInPlace(s *Span, addr, old, size uintptr) (tail *Span, kept, live, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.IsLarge(p.ID, addr, old) || !s.Claim(addr, old) {
		return nil, false, false, false
	}
	switch n := vm.RoundUp(size, PageBytes) / PageBytes; {
	case n < s.pages:
		if tail = p.cut(s, n); tail != nil {
			kept = p.release(tail)
		}
	case n > s.pages && !p.extend(s, n-s.pages):
		return nil, false, true, false
	}
	s.Unclaim(size)
	return tail, kept, true, true
}

// cut shortens a large block to n pages. It returns the run of the rest, which the caller
// releases. If there is no memory for that run's span, it returns nil, and the block keeps its
// pages. mu is held.
func (p *Heap) cut(s *Span, n uintptr) *Span {
	tail, err := p.newSpan()
	if err != nil {
		return nil
	}
	r := Addresses.RegionOf(s.Base)
	edges := [...]uintptr{s.Base + (n-1)*PageBytes, s.Base + n*PageBytes}
	tables := r.tableCost(edges[:]...)
	if p.charge(tables) != nil {
		p.freeSpan(tail)
		return nil
	}
	p.noteTables(r, tables, edges[:]...)
	tail.reset(takenRun)
	tail.Base, tail.pages, tail.Separate = edges[1], s.pages-n, s.Separate
	p.large.Bytes -= tail.Bytes()
	s.pages = n
	return tail
}

// extend adds the n pages behind a large block to it, if they are free or were never handed out.
// Like take, it charges for the clean pages, and does everything that can fail before the first
// change. mu is held.
func (p *Heap) extend(s *Span, n uintptr) bool {
	r := Addresses.RegionOf(s.Base)
	next := p.freeNeighbour(r, s.End())
	if next == nil || next.pages < n {
		// A new segment behind next, or behind the block, becomes part of next.
		from := s.End()
		if next != nil {
			from = next.End()
		}
		if p.mayCharge(n) != nil || p.growAt(from, n) != nil {
			return false
		}
		next = p.freeNeighbour(r, s.End())
	}
	dirty := r.dirty.Count(r.pageIndex(next.Base), n)
	end := next.Base + n*PageBytes
	edges := [...]uintptr{end - PageBytes, min(end, next.End()-PageBytes)}
	tables := r.tableCost(edges[:]...)
	cost := (n-dirty)*PageBytes + tables
	if p.charge(cost) != nil {
		return false
	}
	if !vm.HolesReadZero && dirty < n && Commit(next.Base, n*PageBytes) != nil {
		p.uncharge(cost)
		return false
	}
	p.noteTables(r, tables, edges[:]...)
	p.unlink(r, next)
	r.dirty.SetRange(r.pageIndex(next.Base), n)
	if next.pages -= n; next.pages > 0 {
		next.Base += n * PageBytes
		next.dirty -= dirty
		p.link(r, next)
	} else {
		p.freeSpan(next)
	}
	p.noteTaken(n, n-dirty)
	s.pages += n
	p.large.Bytes += n * PageBytes
	return true
}

// move moves the pages of a claimed large block to a run for size bytes. It returns the new
// run's span, or nil if there is no such run or the system cannot move the pages. Until the old
// run is discarded, both count against the limit.
//
// Moving splits mappings, even if it fails: the new run has its own, and the old run may be left
// with several. Both runs are marked separate, so they are mapped anew when they are freed.
func (p *Heap) move(s *Span, size uintptr) *Span {
	os := vm.PageBytes()
	if s.Bytes() <= copyBytes || s.Bytes()%os != 0 || s.Base%os != 0 {
		return nil
	}
	to, _, err := p.AllocRun(vm.RoundUp(size, PageBytes)/PageBytes, max(1<<s.align, os))
	if err != nil {
		return nil
	}
	err = vm.Move(to.Base, s.Base, s.Bytes())
	if !errors.Is(err, vm.ErrUnsupported) {
		to.setSeparate()
	}
	if err != nil {
		p.FreeRun(to)
		return nil
	}
	p.mu.Lock()
	p.unpublish(s)
	s.setSeparate() // the rest of the old mapping may be split
	p.publishLarge(to, size, s.align)
	to.setSeparate()
	p.mu.Unlock()
	p.discard(s)
	p.Wake()
	return to
}
