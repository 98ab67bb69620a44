// Guard segments: where guard runs come from.

package heap

import (
	"math/bits"

	"github.com/freehold-go/freehold/internal/guardlog"
)

// carveGuardRun adds an idle run of 1<<order units. It reports false if there is no memory
// for one. mu of guards is held.
func (h *Heap) carveGuardRun(order int) bool {
	size := guardUnit() << order
	if h.theGuards().uncarved.size < size && !h.addGuardSegment() {
		return false
	}
	return h.carve(size)
}

// carve makes the first size bytes that are uncarved an idle run. mu of guards is held.
func (h *Heap) carve(size uintptr) bool {
	g := h.theGuards()
	s := spanOf(h.pages.newGuardRun(g.uncarved.base, size/pageBytes))
	if s == nil {
		return false
	}
	s.record = guardlog.New(s.base, size)
	if g.mapped {
		s.separate = 1
	}
	g.uncarved.base += size
	g.uncarved.size -= size
	g.idle[orderOf(s)].push(&s.pspan)
	return true
}

// addGuardSegment carves what is left of the newest segment, and adds another. mu of guards
// is held.
func (h *Heap) addGuardSegment() bool {
	g := h.theGuards()
	for g.uncarved.size > 0 {
		units := g.uncarved.size / guardUnit()
		if !h.carve(guardUnit() << min(bits.Len(uint(units))-1, guardOrders-1)) {
			return false
		}
	}
	addr, mapped, added := h.pages.addClosedSegment()
	if !added {
		return false
	}
	g.segments = append(g.segments, addr)
	g.uncarved, g.mapped = addrRange{addr, segmentBytes}, mapped
	if !h.carve(guardUnit()) {
		return false
	}
	// This run stays inaccessible, as what is in front of the next one.
	g.idle[0].remove(pspanPtr(g.idle[0].head))
	return true
}
