// Limit: the memory that MaxBytes counts, and refusals, which change nothing.

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/vm"
)

// A request that is refused keeps no memory.
func TestRefusalsCostNoMemory(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 4 << 20})
	for {
		if _, err := h.Alloc(40000, 8, false); err != nil {
			break
		}
	}
	refused := 0
	for size := 8; size <= small.MaxSize; size *= 2 {
		for range 3 {
			if _, err := h.Alloc(size, 8, false); err != nil {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	h.check(t) // which finds metadata that nobody has

	h = newHeap(t, Options{})
	alloc(t, h, 40000)
	h.pages.MaxBytes = h.pages.Figures().Committed
	if _, err := h.Alloc(100000, 1<<20, false); err == nil {
		t.Error("a run with others before and behind it was not refused")
	}
	h.check(t)
}

// Room that is too little for a span of large blocks is enough for one of them.
func TestLargeSmallBlockIsPagesAtTheLimit(t *testing.T) {
	h := newHeap(t, Options{})
	alloc(t, h, 16<<20)
	h.pages.MaxBytes = h.pages.Figures().Committed + 100<<10
	b := alloc(t, h, 32<<10)
	if s := small.SpanAt(small.AddrOf(b)); s.Kind != pages.LargeRun {
		t.Error("there was room for a span")
	}
}

// A small block may have pages of its own if it is large, or if few spans fit the limit.
func TestWhoMayTakePages(t *testing.T) {
	for _, tt := range []struct {
		max, size int
		want      bool
	}{
		{0, 8, true}, // no limit
		{1 << 30, 8, false},
		{1 << 30, pages.PageBytes / 2, false},
		{1 << 30, pages.PageBytes/2 + 1, true},
		{64 * pages.PageBytes, 8, false}, // 64 spans
		{64*pages.PageBytes - 64, 8, true},
	} {
		h := newHeap(t, Options{MaxBytes: tt.max})
		if got := h.mayTakePage(small.ClassFor(tt.size, 1), tt.size); got != tt.want {
			t.Errorf("%d bytes under a limit of %d: %v", tt.size, tt.max, got)
		}
	}
}

// The hook of growth is called once for a block that was refused at first.
func TestGrowthAfterARefusalIsTold(t *testing.T) {
	if vm.GoBacked {
		t.Skip("off-heap memory is Go's own")
	}
	p := &testPayer{}
	p.makeRoom = func(int) bool { p.max = 1 << 30; return true }
	full := newHeap(t, Options{})
	alloc(t, full, 16<<20)
	full.pages.MaxBytes = full.pages.Figures().Committed + 100<<10
	told := 0
	pages.OnGrowth(func() { told++ })
	for _, tt := range []struct {
		name string
		h    *Heap
		size int
	}{
		{"a payer has made room", newHeap(t, Options{Payer: p, Decay: never}), 12 << 20},
		{"a small block gets pages, for there is no room for a span", full, 32 << 10},
	} {
		told = 0
		pages.SetWatermark(1)
		alloc(t, tt.h, tt.size)
		pages.SetWatermark(0)
		if told != 1 {
			t.Errorf("%s: told %d times", tt.name, told)
		}
	}
}
