// Guard segments: where guard runs come from.

package heap

import (
	"math/bits"

	"github.com/freehold-go/freehold/internal/guardlog"
	"github.com/freehold-go/freehold/internal/vm"
)

// carveGuardRun adds an idle run of 1<<order units. It reports false if there is no memory
// for one. mu of guards is held.
func (h *Heap) carveGuardRun(order int) bool {
	g, p := h.theGuards(), &h.pages
	p.mu.Lock()
	defer p.mu.Unlock()
	size := guardUnit() << order
	if g.uncarved.size < size && !h.addGuardSegment() {
		return false
	}
	return h.carve(size)
}

// carve makes the first size bytes that are uncarved an idle run. mu of both is held.
func (h *Heap) carve(size uintptr) bool {
	g, p := h.theGuards(), &h.pages
	s, err := p.newSpan()
	if err != nil {
		return false
	}
	s.reset(guardRun)
	s.base, s.pages = g.uncarved.base, size/pageBytes
	s.record = guardlog.New(s.base, size)
	if g.mapped {
		s.separate = 1
	}
	s.setPages(s)
	g.uncarved.base += size
	g.uncarved.size -= size
	g.idle[orderOf(s)].push(s)
	return true
}

// addGuardSegment carves what is left of the newest segment, and adds another. mu of both
// is held.
func (h *Heap) addGuardSegment() bool {
	g, p := h.theGuards(), &h.pages
	for g.uncarved.size > 0 {
		units := g.uncarved.size / guardUnit()
		if !h.carve(guardUnit() << min(bits.Len(uint(units))-1, guardOrders-1)) {
			return false
		}
	}
	if p.closed.Load() {
		return false
	}
	addr, err := addresses.take(segmentBytes, p.id)
	if err != nil {
		return false
	}
	// Pages that the system did not take back from a closed heap would be dirty.
	r := addresses.regionOf(addr)
	tables := heldBytes + r.tableCost(addr)
	if r.dirty.count(r.pageIndex(addr), segmentBytes/pageBytes) != 0 || p.charge(tables) != nil {
		addresses.give(addr, segmentBytes)
		return false
	}
	mapped, err := closeSegment(addr)
	if err != nil {
		p.uncharge(tables)
		addresses.give(addr, segmentBytes)
		return false
	}
	p.noteTables(r, tables, addr)
	p.segments = append(p.segments, addrRange{addr, segmentBytes})
	p.total += segmentBytes
	g.segments = append(g.segments, addr)
	g.uncarved, g.mapped = addrRange{addr, segmentBytes}, mapped
	if !h.carve(guardUnit()) {
		return false
	}
	// This run stays inaccessible, as what is in front of the next one.
	g.idle[0].remove(spanPtr(g.idle[0].head))
	return true
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
