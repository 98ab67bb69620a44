// Page map: functions that look at a run hold mu.

package pages

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

func TestLooksHoldTheLock(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100_000)
	looks := 0
	look := func(s *Span) {
		looks++
		if h.pages.mu.TryLock() {
			h.pages.mu.Unlock()
			t.Error("mu is not held")
		}
		if s.Base != addrOf(b) || s.Size != 100_000 {
			t.Errorf("%+v", *s)
		}
	}
	if next := h.pages.Look(addrOf(b), look); next != addrOf(b)+vm.RoundUp(uintptr(100_000), PageBytes) {
		t.Errorf("the next run is at %#x", next)
	}
	if next := h.pages.Look(addrOf(b)+PageBytes, look); next != addrOf(b)+2*PageBytes {
		t.Errorf("inside the block the next page is at %#x", next)
	}
	h.pages.LookAround(addrOf(b)+PageBytes, look)
	if looks != 2 {
		t.Errorf("%d looks, want 2", looks)
	}
}
