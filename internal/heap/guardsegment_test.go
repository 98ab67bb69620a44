// Guard segments: which addresses become guards, and what a refused segment leaves.

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// owned returns how many bytes of addresses the table of owners says are h's.
func (h *Heap) owned() (bytes uintptr) {
	count := func(r *region) {
		for addr := r.base; addr < r.base+r.used.Load(); addr += segmentBytes {
			if *r.owner(addr) == h.pages.id {
				bytes += segmentBytes
			}
		}
	}
	count(&addresses.first)
	if chained := addresses.chained.Load(); chained != nil {
		for _, r := range *chained {
			count(r)
		}
	}
	return bytes
}

// A segment whose tables would exceed the limit is given back, and the blocks are ordinary
// ones.
func TestGuardSegmentThatTheLimitRefuses(t *testing.T) {
	guardAt(t, 1, 0)
	SetGuardRate(0, 0)
	h := newHeap(t, Options{MaxBytes: 64 << 20})
	alloc(t, h, 64) // so that there is a span with room
	SetGuardRate(1, 0)
	h.pages.maxBytes = h.pages.committed + tableBytes - 1
	for range 3 {
		h.Free(alloc(t, h, 64))
	}
	if st := h.Stats(); st.GuardedEver != 0 || st.GuardsSkipped != 3 {
		t.Errorf("%d guarded and %d skipped, want 0 and 3", st.GuardedEver, st.GuardsSkipped)
	}
	if n := h.owned(); n != h.pages.total {
		t.Errorf("the heap owns %d bytes of addresses, and knows %d", n, h.pages.total)
	}
	h.pages.maxBytes = 64 << 20
	h.Free(alloc(t, h, 64))
	if st := h.Stats(); st.GuardedEver != 1 {
		t.Errorf("%d guarded where the limit has room", st.GuardedEver)
	}
}

// A block that is to be guarded while another goroutine closes the heap takes no addresses
// that nobody would give back.
func TestClosedHeapTakesNoGuardSegment(t *testing.T) {
	guardAt(t, 1, 0)
	for _, blocks := range []int{0, 1} {
		h := newHeap(t, Options{})
		for range blocks {
			alloc(t, h, 64)
		}
		h.Close()
		if b := h.newGuarded(64, 8); b != nil {
			t.Error("a closed heap hands out a block")
		}
		if n := h.owned(); n != 0 {
			t.Errorf("after %d blocks and Close the heap owns %d bytes of addresses", blocks, n)
		}
	}
}

// Addresses whose memory the system did not take back from a closed heap do not become
// guards before it does.
func TestDirtyAddressesDoNotBecomeGuards(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		SetGuardRate(0, 0)
		h := newHeap(t, Options{})
		h.Free(alloc(t, h, 64))
		dirtyAddresses(t)
		SetGuardRate(1, 0)
		for try, guarded := range []uint64{0, 1} {
			h.Free(alloc(t, h, 64))
			if st := h.Stats(); st.GuardedEver != guarded || st.GuardsSkipped != 1 {
				t.Errorf("try %d: %d guarded and %d skipped, want %d and 1", try+1, st.GuardedEver, st.GuardsSkipped, guarded)
			}
			h.check(t)
		}
	})
}

// dirtyAddresses has the space hand out a segment next that a closed heap could not give
// back.
func dirtyAddresses(t *testing.T) {
	addresses.mu.Lock()
	others := addresses.returned
	addresses.returned = nil
	addresses.mu.Unlock()
	t.Cleanup(func() {
		for _, f := range others {
			addresses.give(f.base, f.size)
		}
	})
	addr, err := addresses.take(segmentBytes, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := addresses.regionOf(addr)
	r.dirty.setRange(r.pageIndex(addr), 1)
	defer refuse(vm.OpRevoke)()
	addresses.give(addr, segmentBytes)
}

// The page in front of a guarded block's is inaccessible, also that of a segment's first
// block: what is in front of the segment may be ordinary memory.
func TestInFrontOfASegmentsFirstBlocks(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{})
		for i := range 3 {
			b := alloc(t, h, 64)
			if segment := h.theGuards().segments[0]; addrOf(b) < segment+guardUnit() {
				t.Errorf("block %d is in the first pages of the segment", i)
			}
			mustFault(t, b, -1-int(addrOf(b)%vm.PageBytes()))
		}
	})
}
