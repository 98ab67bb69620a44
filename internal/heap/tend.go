// Tend: giving back memory that is not needed, over time or at once.
//
// While there is something to watch, a timer ticks three times per decay. A
// tick releases what the whole time since the last one had no use for:
//
//   - free pages: as many as were free at every moment, the low-water mark
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
)

// wake makes sure that the timer runs.
func (h *Heap) wake() {
	if h.decay > 0 && !h.awake.Load() && !h.awake.Swap(true) {
		h.timer.Reset(h.decay / ticksPerDecay)
	}
}

// tend is one tick.
func (h *Heap) tend() {
	h.tending.Lock()
	defer h.tending.Unlock()
	if h.closed.Load() {
		return
	}
	h.awake.Store(false)
	h.tick++
	busy := false
	for i := range h.central {
		if h.central[i].rest(h) {
			busy = true
		}
	}
	cached := h.hasCaches()
	if !busy && cached && h.tick-h.drained >= ticksBetweenDrain {
		h.drained, cached = h.tick, false
		h.drainCaches()
		h.shrink()
	}
	h.retryLost()
	h.mu.Lock()
	unused, dirty := h.runs.leastDirty, h.runs.dirty
	h.mu.Unlock()
	h.purge(unused)
	h.mu.Lock()
	progress := h.runs.dirty < dirty || h.runs.leastDirty < h.runs.dirty
	h.runs.leastDirty = h.runs.dirty
	h.mu.Unlock()
	if busy || cached || progress {
		h.wake()
	}
}

// Trim gives back, now, all memory that holds no live block.
func (h *Heap) Trim() {
	h.tending.Lock()
	defer h.tending.Unlock()
	if h.closed.Load() {
		panic(h.closedMessage("Trim"))
	}
	h.release()
}

// withReclaim calls f, which allocates, and where f finds no memory gives some
// back and tries again: first the memory of free pages, then everything. No
// lock of the heap is held.
func (h *Heap) withReclaim(f func() error) error {
	err := f()
	if err == nil || err == errClosed {
		return err
	}
	h.reclaim(func() { h.purge(^uintptr(0)) })
	if err = f(); err == nil || err == errClosed {
		return err
	}
	h.reclaim(h.release)
	return f()
}

func (h *Heap) reclaim(giveBack func()) {
	h.tending.Lock()
	defer h.tending.Unlock()
	if !h.closed.Load() {
		giveBack()
	}
}

// release gives back all memory that holds no live block.
func (h *Heap) release() {
	h.drainCaches()
	h.shrink()
	h.retryLost()
	h.unsettle()
	h.purge(^uintptr(0))
}

// shrink makes every class give back what it can.
func (h *Heap) shrink() {
	for i := range h.central {
		c := &h.central[i]
		c.shrink(h)
		c.punch(h)
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
	if !vm.HolesReadZero || h.hugePages {
		at = 0
	}
	for n := 1; at != 0 && !c.used; n++ {
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
	c.rested = !c.used
}

func (c *central) punchSpan(s *span) {
	holes := uintptr(0)
	blocks := classes[c.class].blocks
	for i := uintptr(0); i < blocks; {
		from := s.free.next(i, blocks, true)
		to := s.free.next(from, blocks, false)
		i = to
		low, high, err := decommit(s.base+from*s.size, (to-from)*s.size)
		if err == nil {
			holes += high - low
		}
	}
	c.holes += int(holes) - int(s.holes)
	s.holes = uint32(holes)
}
