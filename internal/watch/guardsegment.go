// Guard segments: the memory from which guard runs are carved.

package watch

import (
	"math/bits"

	"github.com/freehold-go/freehold/internal/guardlog"
	"github.com/freehold-go/freehold/internal/pages"
)

// carveGuardRun adds an idle run of 1<<order units. It reports false without memory. mu of guards
// is held.
func (h *Heap) carveGuardRun(order int) bool {
	size := guardUnit() << order
	if h.guards.uncarved.Size < size && !h.addGuardSegment() {
		return false
	}
	return h.carve(size)
}

// carve makes the first size uncarved bytes an idle run. mu of guards is held.
func (h *Heap) carve(size uintptr) bool {
	g := &h.guards
	s := runOf(h.pages.NewGuardRun(g.uncarved.Base, size/pages.PageBytes))
	if s == nil {
		return false
	}
	s.record = guardlog.New(s.Base, size)
	if g.mapped {
		s.Separate = 1
	}
	g.uncarved.Base += size
	g.uncarved.Size -= size
	g.idle[orderOf(s)].Push(&s.Span)
	return true
}

// addGuardSegment carves the rest of the newest segment, and adds another. mu of guards is held.
func (h *Heap) addGuardSegment() bool {
	g := &h.guards
	for g.uncarved.Size > 0 {
		units := g.uncarved.Size / guardUnit()
		if !h.carve(guardUnit() << min(bits.Len(uint(units))-1, guardOrders-1)) {
			return false
		}
	}
	addr, mapped, added := h.pages.AddClosedSegment()
	if !added {
		return false
	}
	g.segments = append(g.segments, addr)
	g.uncarved, g.mapped = pages.Range{Base: addr, Size: pages.SegmentBytes}, mapped
	if !h.carve(guardUnit()) {
		return false
	}
	// This run stays inaccessible: it is the guard in front of the next one.
	g.idle[0].Remove(pages.SpanPtr(g.idle[0].Head))
	return true
}
