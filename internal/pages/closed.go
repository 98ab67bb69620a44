// Closed segments: addresses for guarded blocks, inaccessible until the layer above opens them.
//
// Their runs are guard runs. A page of a guard run is accessible only while OpenPages has
// charged for it. Guard runs never become free runs: they go back when the page heap is closed.

package pages

import "github.com/freehold-go/freehold/internal/vm"

// AddClosedSegment adds an inaccessible segment of SegmentBytes without a run. mapped reports
// that its mapping protects it, not the kernel's guards. added is false on failure.
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

// NewGuardRun makes a run of n pages of a closed segment, or returns nil if there is no memory
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

// OpenPages charges for the pages around use, a range in a closed segment, and marks them
// dirty. The caller makes them accessible. It reports false if the limit refuses them.
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

// ClosePages undoes OpenPages. The caller has already made the pages inaccessible.
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

// closeSegment makes a new segment inaccessible by the kernel's guards. If the kernel has none, it
// leaves the segment inaccessible, as it came, and reports mapped. After an error the segment may
// be accessible, but it has no guards, which would fault in the next heap that takes it.
func closeSegment(addr uintptr) (mapped bool, err error) {
	if !vm.HolesReadZero {
		return true, nil
	}
	if err := vm.Commit(addr, SegmentBytes); err != nil {
		return true, nil
	}
	if vm.Advise(addr, SegmentBytes, vm.Guard) == nil && vm.Advise(addr, vm.PageBytes(), vm.Populate) != nil {
		return false, nil // guards refuse Populate; QEMU, which ignores advice, does not
	}
	if err = vm.Revoke(addr, SegmentBytes); err != nil {
		_ = vm.Advise(addr, SegmentBytes, vm.Unguard) // refused where there are none
	}
	return true, err
}
