// Holes: system pages inside spans, given back to the system while all blocks in them are free.

package small

import (
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

const holeBatch = 32 // spans that punch visits without releasing the lock

// Punch makes holes in the spans of all classes. Scavenging is held.
func (h *Heap) Punch() {
	for i := range h.central {
		h.central[i].punch(h)
	}
}

// punch makes holes in the partial spans. It releases mu between batches of spans. If another
// goroutine then moves a block, the list may have changed, and punch stops. Otherwise it sets
// rested, so later ticks skip the class. Scavenging is held, so no drain frees a span meanwhile.
func (c *central) punch(h *Heap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = false
	at, home := uintptr(0), 0
	next := func() {
		for ; at == 0 && home < len(c.homes); home++ {
			if x := c.homes[home].Load(); x != nil {
				at = x.partial[c.class].Head
			}
		}
	}
	if vm.HolesReadZero && !h.pages.HugePages {
		next()
	}
	for n := 1; at != 0 && !c.used; n++ {
		s := spanPtr(at)
		at = s.Next
		next()
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

// punchSpan decommits the system pages of s in which all blocks are free. c.mu is held, so no block
// leaves s meanwhile. Alloc may still reach one through the second entry of a block that was freed
// twice.
func (c *central) punchSpan(s *Span) {
	c.markLiveAgain(s)
	blocks := classes[c.class].blocks
	for i := uintptr(0); i < blocks; {
		from := s.free.Next(i, blocks, true)
		to := s.free.Next(from, blocks, false)
		i = to
		s.replaceStatuses(from, to, FreeDirty, InLimbo) // Alloc then refuses a second entry
		low, high, err := pages.Decommit(s.Base+from*s.Size, (to-from)*s.Size)
		s.replaceStatuses(from, to, InLimbo, FreeDirty)
		if err == nil && low < high {
			before := c.holes
			c.setHoles(s, s.holes|s.systemPages(low, high))
			c.purged += uint64(c.holes - before)
		}
	}
}

// replaceStatuses sets the statuses of the blocks [from, to) that equal old to new. The blocks are
// free, so only a wrong Free may read the statuses meanwhile. That Free panics. go:norace keeps the
// race detector from reporting it first.
//
//go:norace
func (s *Span) replaceStatuses(from, to uintptr, old, new uint16) {
	for i := from; i < to; i++ {
		if st := StatusAt(s.statusOf(i)); *st == old {
			*st = new
		}
	}
}
