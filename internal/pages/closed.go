// Closed segments: addresses whose pages the layer above opens and closes.
//
// Their runs are guard runs: inaccessible but for pages that OpenPages has charged for. They
// are never free runs, and the page heap gives them back with itself.

package pages

import "github.com/freehold-go/freehold/internal/vm"

// AddClosedSegment adds an inaccessible segment of SegmentBytes without a run. It reports
// whether its guards are made of mappings, and whether there is a segment.
func (p *Heap) AddClosedSegment() (addr uintptr, mapped, added bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Closed.Load() {
		return 0, false, false
	}
	addr, err := Addresses.take(SegmentBytes, p.ID)
	if err != nil {
		return 0, false, false
	}
	// Pages that the system did not take back from a closed heap would be dirty.
	r := Addresses.RegionOf(addr)
	tables := heldBytes + r.tableCost(addr)
	if r.dirty.Count(r.pageIndex(addr), SegmentBytes/PageBytes) != 0 || p.charge(tables) != nil {
		Addresses.give(addr, SegmentBytes)
		return 0, false, false
	}
	if mapped, err = closeSegment(addr); err != nil {
		p.uncharge(tables)
		Addresses.give(addr, SegmentBytes)
		return 0, false, false
	}
	p.noteTables(r, tables, addr)
	p.segments = append(p.segments, Range{addr, SegmentBytes})
	p.total += SegmentBytes
	return addr, mapped, true
}

// NewGuardRun makes n pages of a closed segment a run. It returns nil if there is no memory
// for its span.
func (p *Heap) NewGuardRun(base, n uintptr) *Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.newSpan()
	if err != nil {
		return nil
	}
	s.reset(GuardRun)
	s.Base, s.pages = base, n
	s.setPages(s)
	return s
}

// OpenPages charges for the pages that contain use, a part of a closed segment, and marks them
// dirty. The caller makes them accessible. It reports false if they would exceed the limit.
func (p *Heap) OpenPages(use Range) bool {
	r := Addresses.RegionOf(use.Base)
	p.mu.Lock()
	defer p.mu.Unlock()
	from, n := PagesAround(r, use)
	if p.Closed.Load() || p.charge(n*PageBytes) != nil {
		return false
	}
	r.dirty.SetRange(from, n)
	return true
}

// ClosePages undoes OpenPages. The caller has made the pages inaccessible.
func (p *Heap) ClosePages(use Range) {
	r := Addresses.RegionOf(use.Base)
	p.mu.Lock()
	defer p.mu.Unlock()
	from, n := PagesAround(r, use)
	r.dirty.ClearRange(from, n)
	p.uncharge(n * PageBytes)
}

// PagesAround returns the pages that contain a range, as positions in r.dirty.
func PagesAround(r *region, in Range) (from, n uintptr) {
	from = r.pageIndex(in.Base)
	return from, r.pageIndex(in.Base+in.Size-1) + 1 - from
}

// closeSegment makes a new segment inaccessible by guards, or leaves it inaccessible, as it
// came, where the kernel has none. On an error it may be accessible, but has no guards, which
// would fault under whoever has the addresses next.
func closeSegment(addr uintptr) (mapped bool, err error) {
	if !vm.HolesReadZero {
		return true, nil
	}
	if err := vm.Commit(addr, SegmentBytes); err != nil {
		return true, nil
	}
	if vm.Advise(addr, SegmentBytes, vm.Guard) == nil && vm.Advise(addr, vm.PageBytes(), vm.Populate) != nil {
		return false, nil // QEMU, which ignores advice, would have populated the page
	}
	if err = vm.Revoke(addr, SegmentBytes); err != nil {
		_ = vm.Advise(addr, SegmentBytes, vm.Unguard) // refused where there are none
	}
	return true, err
}
