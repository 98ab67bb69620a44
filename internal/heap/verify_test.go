// Verify: the invariants of a heap at rest.

package heap

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
)

// verify verifies the invariants of h and of all that it has. Nobody else uses h.
func (h *Heap) verify() error {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	var n pages.Tally
	var err error
	kept := 0
	h.caches.Each(func(c *cache) {
		n.Object(cacheBytes)
		if cacheErr := c.Verify(n.Object); cacheErr != nil {
			err = cacheErr
		}
		if largeErr := c.runs.verify(h.pages.ID); largeErr != nil {
			err = largeErr
		}
		kept += c.runs.count().Blocks
	})
	if err != nil {
		return err
	}
	v := h.small.Verify(n.Object, h.watch.Size)
	claimed := 0 // large blocks without a size, whose run a cache keeps
	err = h.pages.Verify(&n, h.watch.Uncarved(), func(s *pages.Span, dirty uintptr) error {
		switch s.Kind {
		case pages.LargeRun:
			if s.Size == 0 {
				claimed++
			}
			if size := h.watch.Size(s.Base); isLargeWatched(s) != (size > 0) || size > s.Size {
				return fmt.Errorf("large block %#x of %d bytes: %d bytes watched", s.Base, s.Size, size)
			}
		case pages.BlockRun:
			return v.Run(small.SpanOf(s))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if claimed != kept {
		return fmt.Errorf("%d large blocks have no size, and caches keep %d", claimed, kept)
	}
	return v.End()
}

// verify verifies the runs of a cache of owner's.
func (l *keptRuns) verify(owner uint32) error {
	n, held := uintptr(0), uintptr(0)
	for i, at := range l.stacks {
		for ; at != 0; at = pages.SpanPtr(at).Next {
			s := pages.SpanPtr(at)
			if s.Kind != pages.LargeRun || s.Size != 0 || s.Owner != owner || s.Separate != 0 || s.Pages() != uintptr(i)+1 || pages.SpanAt(s.Base) != s {
				return fmt.Errorf("the stack of %d pages has %+v", i+1, *s)
			}
			n, held = n+1, held+s.Pages()
		}
	}
	if n != l.n || held != l.held || held > l.mostHeld && (n != 1 || held > l.longest) {
		return fmt.Errorf("%d runs of %d pages are kept, of %d pages at most, or one of %d; counted %d of %d", n, held, l.mostHeld, l.longest, l.n, l.held)
	}
	return nil
}
