package heap

import (
	"testing"
	"testing/synctest"
	"time"
)

// A heap that works inside a testing/synctest bubble and outside of it gives its
// memory back in both, whichever made it and however the bubble ended.
func TestHeapInAndOutOfABubble(t *testing.T) {
	const decay = 30 * time.Millisecond
	// use leaves memory that a tick gives back, oversize runs and others.
	use := func(h *Heap) {
		for range 200 { // more than are let pass between looks at the clock
			h.Free(alloc(t, h, 200000))
			var small [300][]byte
			for i := range small {
				small[i] = alloc(t, h, 64)
			}
			for _, b := range small {
				h.Free(b)
			}
		}
		big := alloc(t, h, 9<<20)
		clear(big)
		h.Free(big)
	}
	givesBack := func(h *Heap) {
		t.Helper()
		for range 2000 {
			st := h.Stats()
			if st.Committed == st.Metadata {
				return
			}
			time.Sleep(decay / 3) // the bubble's clock, or time for the timer
		}
		t.Errorf("%d bytes are kept", h.Stats().Committed)
	}
	t.Run("made inside", func(t *testing.T) {
		var h *Heap
		synctest.Test(t, func(t *testing.T) {
			h = new(Heap)
			h.Init(Options{Decay: decay})
			use(h)
			givesBack(h)
		})
		use(h)
		givesBack(h)
		h.Close()
	})
	t.Run("woken inside", func(t *testing.T) {
		h := newHeap(t, Options{Decay: decay})
		synctest.Test(t, func(t *testing.T) { use(h) }) // its timers never fire
		use(h)
		givesBack(h)
	})
}
