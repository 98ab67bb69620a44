// Alarm: when a timer is set, in and out of a testing/synctest bubble.

package heap

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/internal/vm"
)

const never = time.Duration(1) << 50 // a decay whose timer does not fire here

// A heap at rest has no timer; one with memory to return has.
func TestTimerRunsOnlyWhenThereIsWork(t *testing.T) {
	h := newHeap(t, Options{Decay: 1 << 50}) // it never fires here
	if h.pages.alarm.set() {
		t.Error("awake before the first block")
	}
	h.Free(alloc(t, h, 1<<20))
	if !h.pages.alarm.set() {
		t.Error("asleep with memory to return")
	}
	for range 2 * ticksBetweenDrain {
		h.Tick()
	}
	if h.pages.alarm.set() {
		t.Error("awake with nothing to do")
	}
	h.Free(alloc(t, h, 100))
	if !h.pages.alarm.set() {
		t.Error("asleep with blocks in the caches")
	}
}

// The timer runs as long as free pages hold memory.
func TestTimerRunsUntilFreePagesAreGivenBack(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	h.Free(alloc(t, h, 1<<20))
	for range 10 {
		h.Tick()
		if h.pages.dirty > 0 && !h.pages.alarm.set() {
			t.Fatalf("asleep with %d free pages of memory", h.pages.dirty)
		}
	}
	if h.pages.dirty > 0 || h.pages.alarm.set() {
		t.Errorf("%d free pages of memory, awake: %v", h.pages.dirty, h.pages.alarm.set())
	}
}

// The timer does not stop before the caches' blocks have become holes.
func TestTimerRunsUntilHolesAreMade(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{Decay: never})
	var live [][]byte
	for range classes[classFor(4096, 1)].blocks {
		live = append(live, alloc(t, h, 4096))
	}
	for _, b := range live[:2] { // into a cache
		h.Free(b)
	}
	for n := 0; h.pages.alarm.set(); n++ {
		if n > 20 {
			t.Fatal("the timer does not stop")
		}
		h.Tick()
	}
	if h.central[classFor(4096, 1)].holes == 0 {
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

// One alarm is set at a time, however long the work of the last one waits, and
// one that was replaced does nothing.
func TestAlarmDoesNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarm
		var rang atomic.Int32
		ring := func() { rang.Add(1) } // it waits, and has not called stop
		a.start(time.Second, ring)
		time.Sleep(time.Minute)
		if !a.set() || a.missed(time.Second) || rang.Load() != 1 {
			t.Errorf("a waiting alarm: set %v, missed %v, rang %d times", a.set(), a.missed(time.Second), rang.Load())
		}
		a.stop()
		if a.set() {
			t.Error("it is set after stop")
		}
		a.start(time.Second, func() { t.Error("an alarm that was replaced rang") })
		a.start(2*time.Second, ring)
		time.Sleep(time.Minute)
		if rang.Load() != 2 {
			t.Errorf("rang %d times, want 2", rang.Load())
		}
	})
}

// A tick that a bubble swallowed is made up for by large blocks alone, and by the small
// one that takes a span.
func TestSwallowedTickIsMadeUpFor(t *testing.T) {
	const decay = time.Hour
	for name, use := range map[string]func(h *Heap){
		"large blocks": func(h *Heap) {
			for range 64 {
				h.Free(alloc(t, h, 100<<10))
			}
		},
		"a span": func(h *Heap) {
			c := &h.central[classFor(32<<10, 1)]
			for spans := c.spans; c.spans == spans; {
				alloc(t, h, 32<<10)
			}
		},
	} {
		h := newHeap(t, Options{Decay: decay})
		synctest.Test(t, func(*testing.T) { use(h); h.pages.wake() })
		if !h.pages.alarm.missed(decay) {
			t.Fatalf("%s: the bubble left no alarm", name)
		}
		use(h)
		if h.pages.alarm.missed(decay) {
			t.Errorf("%s: no other alarm is set", name)
		}
	}
}

// Small blocks that neither take nor return a span make up for it too.
func TestSwallowedTickIsMadeUpForByMagazines(t *testing.T) {
	const decay = time.Hour
	h := newHeap(t, Options{Decay: decay})
	var live [][]byte
	for range 40000 {
		live = append(live, alloc(t, h, 64))
	}
	h.pages.alarm.stop()
	synctest.Test(t, func(*testing.T) { h.pages.wake() })
	if !h.pages.alarm.missed(decay) {
		t.Fatal("the bubble left no alarm")
	}
	for i := 0; i < len(live); i += 2 { // no span is emptied
		h.Free(live[i])
	}
	if h.pages.alarm.missed(decay) {
		t.Error("no other alarm is set")
	}
}

// An alarm is missed once it is later than the given duration.
func TestAlarmIsMissedAfterAWhile(t *testing.T) {
	var a alarm
	for late, want := range map[time.Duration]bool{-time.Hour: false, time.Minute: false, 2 * time.Hour: true} {
		a.due.Store(time.Now().Add(-late).UnixNano())
		if got := a.missed(time.Hour); got != want {
			t.Errorf("%v late: missed: %v", late, got)
		}
	}
}
