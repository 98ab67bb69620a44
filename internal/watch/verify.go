// Verify: the invariants of the watched blocks of a heap at rest, for the tests.

package watch

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/pages"
)

// Verify verifies the records and the guards of h, which has that many blocks whose status
// is "watched", or any number if it is below 0.
func (h *Heap) Verify(marked int) error {
	live, err := h.verifyList(&h.live, true)
	if err != nil {
		return err
	}
	freed, err := h.verifyList(&h.freed, false)
	if err != nil {
		return err
	}
	if marked >= 0 && live+freed != marked {
		return fmt.Errorf("%d records of live blocks and %d of freed ones, want %d", live, freed, marked)
	}
	var guarded guardCount
	h.guards.eachRun(func(s *run) {
		if s.live {
			bytes, _ := h.engine.GoodSize(int(s.Size))
			guarded.add(1, uintptr(bytes))
		}
	})
	if guarded != h.guards.live {
		return fmt.Errorf("guarded is %+v, want %+v", h.guards.live, guarded)
	}
	return nil
}

// verifyList returns how many records of blocks outside of runs l has.
func (h *Heap) verifyList(l *list, live bool) (n int, err error) {
	table.mu.Lock()
	defer table.mu.Unlock()
	bytes := uintptr(0)
	l.each(func(r *record) {
		bytes += r.size + uintptr(r.red)
		s := runAt(r.addr)
		if s == nil {
			n++
		}
		if find(r.addr) != r || r.live != live || s != nil && (!s.live || s.block != r.addr) {
			err = fmt.Errorf("record %+v is at its address: %v; live, want %v", *r, find(r.addr) == r, live)
		}
	})
	if bytes != l.bytes {
		err = fmt.Errorf("a list of %d bytes, want %d", l.bytes, bytes)
	}
	return n, err
}

// VerifyRun verifies a guard run, of which so many pages are dirty.
func (h *Heap) VerifyRun(span *pages.Span, dirty uintptr) error {
	s, want := runOf(span), uintptr(0)
	if s.live || dirty != 0 && !h.guards.queued(s) { // its pages could not be closed
		_, want = pages.PagesAround(pages.Addresses.RegionOf(s.Base), s.inUse())
	}
	if dirty != want {
		return fmt.Errorf("guard run %#x: %d pages are dirty, want %d; live %v", s.Base, dirty, want, s.live)
	}
	return nil
}

// queued reports whether s is in quarantine or idle.
func (g *guards) queued(s *run) bool {
	return s.Next != 0 || s.Prev != 0 || g.quarantine.Head == s.Addr() || g.idle[orderOf(s)].Head == s.Addr()
}

// Uncarved returns the addresses of h's segments that are no run.
func (h *Heap) Uncarved() pages.Range { return h.guards.uncarved }
