// Scavenge: giving back unused memory, over time or at once.
//
// While there is something to watch, a timer ticks three times per decay. A tick gives
// back what was not used since the last tick, in this order:
//
//  1. Each class that moved no block returns its stocks to the spans, frees its empty
//     spans, and decommits the system pages of its other spans in which all blocks are
//     free: "holes". Another class returns the magazines that each stock had at every
//     moment: their blocks may keep as many spans.
//  2. If no class moved a block, or the caches hold much, the caches are drained, at
//     most once per decay, since that stops the world.
//  3. The page heap purges as many pages as were free at every moment: the low-water
//     mark. Steps 1 and 2 come first, as they free pages. Long free runs are purged
//     sooner: see oversize.go of package pages.
//
// There is no background goroutine, and a heap at rest has no timer.

package heap

import (
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	ticksBetweenDrain = pages.TicksPerDecay
	holeBatch         = 32 // spans that punch visits under one lock

	// If the caches hold more than minHoard bytes, and more than this part of the live
	// bytes, a busy heap drains them too.
	minHoard   = 512 << 10
	hoardShare = 8
)

// tick gives back what was not used since the last tick. It sets the next tick if there
// is anything left to watch.
func (h *Heap) tick() {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if h.pages.Closed.Load() {
		return
	}
	h.pages.Alarm.Stop()
	h.ticks++
	busy := false
	for i := range h.central {
		if h.central[i].rest(h) {
			busy = true
		}
	}
	cached := h.hasCaches() || h.limbo.bytes.Load() > 0
	if cached && h.ticks-h.drained >= ticksBetweenDrain && (!busy || h.cachesHoldMuch()) {
		h.drained, cached = h.ticks, false
		if busy {
			h.drain()
		} else {
			h.drainPatiently()
		}
		h.punch()
	}
	h.pages.RetryUnmapped()
	if more := h.pages.PurgeUnused(); more || busy || cached {
		h.pages.Wake()
	}
}

// cachesHoldMuch reports whether the caches hold much compared to the live bytes.
func (h *Heap) cachesHoldMuch() bool {
	c := h.count()
	return c.cached > max(minHoard, c.live/hoardShare)
}

// Purge gives the memory of free pages back, about that many bytes at most.
func (h *Heap) Purge(bytes int) {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if !h.pages.Closed.Load() {
		h.pages.Purge(uintptr(bytes)/pages.PageBytes + pages.SlackPages)
	}
}

// TrimSpare trims a heap that has a page to give back at least, but for its quarantine. A
// heap that is closed has none.
func (h *Heap) TrimSpare() {
	n := h.count()
	if spare := n.cached + n.empty + int(h.pages.Figures().Dirty); spare >= pages.PageBytes {
		h.tryTrim()
	}
}

// Trim gives back all memory without live blocks at once.
func (h *Heap) Trim() {
	h.watch.Release()
	if !h.tryTrim() {
		h.mustBeOpen("Heap.Trim")
	}
}

// tryTrim trims all but the quarantine, which Close may be emptying. It reports false for a
// heap that is closed.
func (h *Heap) tryTrim() bool {
	h.mustBeMade("Heap.Trim")
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if h.pages.Closed.Load() {
		return false
	}
	h.drain()
	h.punch()
	h.pages.RetryUnmapped()
	h.pages.RetryPurge()
	h.pages.Purge(^uintptr(0))
	return true
}

// punch makes holes in all classes.
func (h *Heap) punch() {
	for i := range h.central {
		h.central[i].punch(h)
	}
}

// rest is a class's part of a tick. It reports whether the class moved a block since
// the last tick.
func (c *central) rest(h *Heap) bool {
	used := false
	for i := range h.stocks {
		used = h.stocks[i][c.class].tick(h) || used
	}
	c.mu.Lock()
	c.rested = c.rested && !used
	idle := !used && !c.rested
	c.mu.Unlock()
	if idle {
		c.shrink(h, false)
		c.punch(h)
	}
	return used
}

// punch makes holes in the partial spans. It unlocks mu after each batch of spans, and
// gives up if the class then has moved a block or freed a span, as the list may have
// changed. rested tells later ticks that nothing is left to do.
func (c *central) punch(h *Heap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = false
	at := c.partial.Head
	if !vm.HolesReadZero || h.pages.HugePages {
		at = 0
	}
	released := c.released
	for n := 1; at != 0 && !c.used && c.released == released; n++ {
		s := spanPtr(at)
		at = s.Next
		if !s.punched {
			s.punched = true
			c.punchSpan(s)
		}
		if n%holeBatch == 0 {
			c.mu.Unlock()
			c.mu.Lock()
		}
	}
	c.rested = !c.used && at == 0
}

// punchSpan decommits the system pages of s in which all blocks are free. c.mu is held,
// so no free block of s is handed out meanwhile, except by the second entry of a block
// freed twice.
func (c *central) punchSpan(s *span) {
	c.markLiveAgain(s)
	holes := uintptr(0) // bytes
	blocks := classes[c.class].blocks
	for i := uintptr(0); i < blocks; {
		from := s.free.Next(i, blocks, true)
		to := s.free.Next(from, blocks, false)
		i = to
		s.replaceStatuses(from, to, freeDirty, inLimbo) // a second entry finds no free block meanwhile
		low, high, err := pages.Decommit(s.Base+from*s.Size, (to-from)*s.Size)
		s.replaceStatuses(from, to, inLimbo, freeDirty)
		if err == nil {
			holes += high - low
			c.purged += uint64(high - low)
		}
	}
	c.holes += int(holes) - int(s.holes)
	s.holes = uint32(holes)
}
