// Alarm: when a timer is set, in and out of a testing/synctest bubble.

package heap

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/vm"
)

// A heap at rest has no timer; one with memory to return has.
func TestTimerRunsOnlyWhenThereIsWork(t *testing.T) {
	h := newHeap(t, Options{Decay: 1 << 50}) // it never fires here
	if h.pages.Alarm.Set() {
		t.Error("awake before the first block")
	}
	h.Free(alloc(t, h, 1<<20))
	if !h.pages.Alarm.Set() {
		t.Error("asleep with memory to return")
	}
	for range 2 * ticksBetweenDrain {
		h.Tick()
	}
	if h.pages.Alarm.Set() {
		t.Error("awake with nothing to do")
	}
	h.Free(alloc(t, h, 100))
	if !h.pages.Alarm.Set() {
		t.Error("asleep with blocks in the caches")
	}
	h.Trim()
	if h.Tick(); h.pages.Alarm.Set() {
		t.Error("a tick after Trim sets a timer")
	}
	alloc(t, h, 10)
	h.Close()
	h.pages.Alarm.Stop()
	if h.Tick(); h.pages.Alarm.Set() {
		t.Error("a tick after Close sets a timer")
	}
}

// The timer does not stop before the caches' blocks have become holes.
func TestTimerRunsUntilHolesAreMade(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{Decay: never})
	var live [][]byte
	for range small.SpanPages(small.ClassFor(4096, 1)) * pages.PageBytes / 4096 {
		live = append(live, alloc(t, h, 4096))
	}
	for _, b := range live[:2] { // into a cache
		h.Free(b)
	}
	for n := 0; h.pages.Alarm.Set(); n++ {
		if n > 20 {
			t.Fatal("the timer does not stop")
		}
		h.Tick()
	}
	if h.small.Holding(small.ClassFor(4096, 1), 0).Holes == 0 {
		t.Error("no holes were made")
	}
}

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
			h = makeHeap(Options{Decay: decay})
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

// A tick that a bubble swallowed is made up for by large blocks alone, by the small block that takes
// a span, and by small blocks that neither take nor return a span.
func TestSwallowedTickIsMadeUpFor(t *testing.T) {
	const decay = time.Hour
	for name, use := range map[string]func(h *Heap, live [][]byte){
		"large blocks": func(h *Heap, _ [][]byte) {
			for range 64 {
				h.Free(alloc(t, h, 3<<20)) // longer than what caches keep
			}
		},
		"a span": func(h *Heap, _ [][]byte) {
			spans := func() int { return h.small.Holding(small.ClassFor(32<<10, 1), 0).Spans }
			for had := spans(); spans() == had; {
				alloc(t, h, 32<<10)
			}
		},
		"magazines": func(h *Heap, live [][]byte) {
			for i := 0; i < len(live); i += 2 { // no span is emptied
				h.Free(live[i])
			}
		},
	} {
		h := newHeap(t, Options{Decay: decay})
		var live [][]byte
		for range 40000 {
			live = append(live, alloc(t, h, 64))
		}
		if name == "a span" {
			use(h, nil)
		}
		h.pages.Alarm.Stop()
		synctest.Test(t, func(*testing.T) { h.pages.Wake() })
		if !h.pages.Alarm.Missed(decay) {
			t.Fatalf("%s: the bubble left no alarm", name)
		}
		use(h, live)
		if h.pages.Alarm.Missed(decay) {
			t.Errorf("%s: no other alarm is set", name)
		}
	}
}
