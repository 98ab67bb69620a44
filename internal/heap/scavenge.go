// Scavenge: giving back memory that is not needed, over time or at once.
//
// While there is something to watch, a timer ticks three times per decay. A
// tick releases what the whole time since the last one had no use for:
//
//   - free pages: as many as were free at every moment, the low-water mark; long
//     free runs go sooner, see oversize.go
//   - a class that moved no block: its stock, its empty spans, and the system
//     pages that only free blocks of its other spans touch ("holes")
//   - if no class moved any: the caches, at most once per decay, since that
//     stops the world for a moment
//
// No goroutine waits: a heap at rest has no timer running.

package heap

import (
	"time"

	"github.com/freehold-go/freehold/internal/vm"
)

// DefaultDecay is how long memory without use stays with a heap.
const DefaultDecay = time.Second

const (
	ticksPerDecay     = 3
	ticksBetweenDrain = ticksPerDecay
	holeBatch         = 32 // spans looked at under one lock

	makesHoles = vm.HolesReadZero && !debugging // a hole is no poison

	// Caches that hold more than minHoard bytes, and more than this part of what
	// is live, are drained while the heap is busy too.
	minHoard   = 512 << 10
	hoardShare = 8
)

// tick releases what nothing has used since the last tick.
func (h *Heap) tick() {
	h.pages.scavenging.Lock()
	defer h.pages.scavenging.Unlock()
	if h.pages.closed.Load() {
		return
	}
	h.pages.alarm.stop()
	h.ticks++
	busy := false
	for i := range h.central {
		if h.central[i].rest(h) {
			busy = true
		}
	}
	cached := h.hasCaches() || h.limbo.bytes.Load() > 0
	if cached && h.ticks-h.drained >= ticksBetweenDrain && (!busy || h.hoards()) {
		h.drained, cached = h.ticks, false
		h.drain()
		h.punch()
	}
	h.pages.retryUnmapped()
	if more := h.pages.purgeUnused(); more || busy || cached {
		h.pages.wake()
	}
}

// hoards reports whether the caches hold much, beside what is live.
func (h *Heap) hoards() bool {
	c := h.count()
	return c.cached > max(minHoard, c.live/hoardShare)
}

// Trim gives back, now, all memory that holds no live block.
func (h *Heap) Trim() {
	h.pages.scavenging.Lock()
	defer h.pages.scavenging.Unlock()
	h.mustBeOpen("Heap.Trim")
	h.drain()
	h.punch()
	h.pages.retryUnmapped()
	h.pages.retryPurge()
	h.pages.purge(^uintptr(0))
}

// punch makes every class give back the system pages that only free blocks touch.
func (h *Heap) punch() {
	for i := range h.central {
		h.central[i].punch(h)
	}
}

// rest is a class's part of a tick. It reports whether the class moved a block
// since the last.
func (c *central) rest(h *Heap) bool {
	c.mu.Lock()
	used := c.used
	c.used = false
	idle := !used && !c.rested
	c.mu.Unlock()
	if idle {
		c.shrink(h)
		c.punch(h)
	}
	return used
}

// punch gives back the system pages that only free blocks touch. It gives up
// when the class moves a block.
func (c *central) punch(h *Heap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = false
	at := c.partial.head
	if !makesHoles || h.pages.hugePages {
		at = 0
	}
	released := c.released
	for n := 1; at != 0 && !c.used && c.released == released; n++ {
		s := spanPtr(at)
		at = s.next
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

// punchSpan gives back the system pages that only free blocks of s touch.
func (c *central) punchSpan(s *span) {
	c.retake(s)
	holes := uintptr(0)
	blocks := classes[c.class].blocks
	for i := uintptr(0); i < blocks; {
		from := s.free.next(i, blocks, true)
		to := s.free.next(from, blocks, false)
		i = to
		s.replaceStatuses(from, to, freeDirty, inLimbo) // a second entry finds no free block meanwhile
		low, high, err := decommit(s.base+from*s.size, (to-from)*s.size)
		s.replaceStatuses(from, to, inLimbo, freeDirty)
		if err == nil {
			holes += high - low
			c.traffic.purged += uint64(high - low)
		}
	}
	c.holes += int(holes) - int(s.holes)
	s.holes = uint32(holes)
}
