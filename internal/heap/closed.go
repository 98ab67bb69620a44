// Closed segments: addresses whose pages the layer above opens and closes.
//
// Their runs are guard runs: inaccessible but for pages that openPages has charged for. They
// are never free runs, and the page heap gives them back with itself.

package heap

import "github.com/freehold-go/freehold/internal/vm"

// addClosedSegment adds an inaccessible segment of segmentBytes without a run. It reports
// whether its guards are made of mappings, and whether there is a segment.
func (p *pageHeap) addClosedSegment() (addr uintptr, mapped, added bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return 0, false, false
	}
	addr, err := addresses.take(segmentBytes, p.id)
	if err != nil {
		return 0, false, false
	}
	// Pages that the system did not take back from a closed heap would be dirty.
	r := addresses.regionOf(addr)
	tables := heldBytes + r.tableCost(addr)
	if r.dirty.count(r.pageIndex(addr), segmentBytes/pageBytes) != 0 || p.charge(tables) != nil {
		addresses.give(addr, segmentBytes)
		return 0, false, false
	}
	if mapped, err = closeSegment(addr); err != nil {
		p.uncharge(tables)
		addresses.give(addr, segmentBytes)
		return 0, false, false
	}
	p.noteTables(r, tables, addr)
	p.segments = append(p.segments, addrRange{addr, segmentBytes})
	p.total += segmentBytes
	return addr, mapped, true
}

// newGuardRun makes n pages of a closed segment a run. It returns nil if there is no memory
// for its span.
func (p *pageHeap) newGuardRun(base, n uintptr) *pspan {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.newSpan()
	if err != nil {
		return nil
	}
	s.reset(guardRun)
	s.base, s.pages = base, n
	s.setPages(s)
	return s
}

// openPages charges for the pages that contain use, a part of a closed segment, and marks them
// dirty. The caller makes them accessible. It reports false if they would exceed the limit.
func (p *pageHeap) openPages(use addrRange) bool {
	r := addresses.regionOf(use.base)
	p.mu.Lock()
	defer p.mu.Unlock()
	from, n := pagesAround(r, use)
	if p.closed.Load() || p.charge(n*pageBytes) != nil {
		return false
	}
	r.dirty.setRange(from, n)
	return true
}

// closePages undoes openPages. The caller has made the pages inaccessible.
func (p *pageHeap) closePages(use addrRange) {
	r := addresses.regionOf(use.base)
	p.mu.Lock()
	defer p.mu.Unlock()
	from, n := pagesAround(r, use)
	r.dirty.clearRange(from, n)
	p.uncharge(n * pageBytes)
}

// pagesAround returns the pages that contain a range, as positions in r.dirty.
func pagesAround(r *region, in addrRange) (from, n uintptr) {
	from = r.pageIndex(in.base)
	return from, r.pageIndex(in.base+in.size-1) + 1 - from
}

// closeSegment makes a new segment inaccessible by guards, or leaves it inaccessible, as it
// came, where the kernel has none. On an error it may be accessible, but has no guards, which
// would fault under whoever has the addresses next.
func closeSegment(addr uintptr) (mapped bool, err error) {
	if !vm.HolesReadZero {
		return true, nil
	}
	if err := vm.Commit(addr, segmentBytes); err != nil {
		return true, nil
	}
	if vm.Advise(addr, segmentBytes, vm.Guard) == nil && vm.Advise(addr, vm.PageBytes(), vm.Populate) != nil {
		return false, nil // QEMU, which ignores advice, would have populated the page
	}
	if err = vm.Revoke(addr, segmentBytes); err != nil {
		_ = vm.Advise(addr, segmentBytes, vm.Unguard) // refused where there are none
	}
	return true, err
}
