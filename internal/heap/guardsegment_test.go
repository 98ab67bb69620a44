// Guard segments: what is in front of their blocks. Package pages has the tests of refused ones.

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

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

// Where there is no segment for guards, the blocks are ordinary ones.
func TestGuardSegmentThatTheLimitRefuses(t *testing.T) {
	guardAt(t, 1, 0)
	SetGuardRate(0, 0)
	h := newHeap(t, Options{MaxBytes: 64 << 20})
	alloc(t, h, 64) // so that there is a span with room
	SetGuardRate(1, 0)
	h.pages.MaxBytes = h.pages.Figures().Committed
	for range 3 {
		h.Free(alloc(t, h, 64))
	}
	if st := h.Stats(); st.GuardedEver != 0 || st.GuardsSkipped != 3 {
		t.Errorf("%d guarded and %d skipped, want 0 and 3", st.GuardedEver, st.GuardsSkipped)
	}
	h.pages.MaxBytes = 64 << 20
	h.Free(alloc(t, h, 64))
	if st := h.Stats(); st.GuardedEver != 1 {
		t.Errorf("%d guarded where the limit has room", st.GuardedEver)
	}
	h.Close()
	if b := h.newGuarded(64, 8); b != nil {
		t.Error("a closed heap hands out a block")
	}
}
