package pages

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/internal/vm"
)

// keeps returns the bytes of h's memory that hold no block.
func (h *testHeap) keeps() int {
	st := h.Stats()
	return st.Committed - st.Metadata - st.Active
}

func TestOversizeRunsGoBackLongBeforeTheDecay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeap(t, Options{Decay: time.Second})
		large, barrier, small := alloc(t, h, 20<<20), alloc(t, h, 40000), alloc(t, h, 2<<20)
		h.Free(large)
		h.Free(small)
		time.Sleep(h.pages.decay/5 + 1)
		synctest.Wait()
		if got := h.keeps(); got != 2<<20 {
			t.Errorf("after a fifth of the decay the heap keeps %d bytes, want the 2 MiB", got)
		}
		time.Sleep(h.pages.decay)
		synctest.Wait()
		if got := h.keeps(); got != 0 {
			t.Errorf("after the decay the heap keeps %d bytes", got)
		}
		h.Free(barrier)
		h.Close()
	})
}

// While large runs are taken, ticks purge no other free runs.
func TestOversizeRunsStayWhileLargeRunsAreTaken(t *testing.T) {
	h := newHeap(t, Options{})
	spare, barrier := alloc(t, h, 64<<20), alloc(t, h, 40000)
	h.Free(spare)
	h.pages.tickOversize() // since the last tick, runs were taken
	for range 5 {
		h.Free(alloc(t, h, 8<<20))
		h.pages.tickOversize()
		if got := h.keeps(); got < 64<<20 {
			t.Fatalf("the heap keeps %d bytes while it is busy", got)
		}
	}
	alloc(t, h, 2<<20) // too small to count as oversize
	h.pages.tickOversize()
	if got := h.keeps(); got > 8<<20 {
		t.Errorf("the heap keeps %d bytes after a tick at rest", got)
	}
	h.Free(barrier)
}

// If a loop frees and allocates the same block, none of its pages is purged.
func TestOversizeRunThatEveryTickNeedsStays(t *testing.T) {
	h := newHeap(t, Options{})
	for range 5 {
		useAndFree(t, h, 64<<20)
		h.pages.tickOversize()
		if got := h.keeps(); got < 64<<20 {
			t.Fatalf("the heap keeps %d bytes", got)
		}
	}
	h.pages.tickOversize()
	if got := h.keeps(); got != 0 {
		t.Errorf("the heap keeps %d bytes that a whole tick had no use for", got)
	}
}

// If purged pages are needed again soon, ticks stop purging.
func TestOversizeRunsThatComeBackStay(t *testing.T) {
	h := newHeap(t, Options{})
	cycle := func() (kept bool) {
		useAndFree(t, h, 64<<20)
		for range 3 { // longer than the low-water mark's memory
			h.pages.tickOversize()
		}
		return h.keeps() > 0
	}
	if cycle() {
		t.Fatal("the run did not go the first time")
	}
	kept := 0
	for ; kept < 100 && cycle(); kept++ {
	}
	if want := oversizeHoldTicks / 3; kept < want-1 || kept > want+1 {
		t.Errorf("the run stayed for %d cycles, want about %d", kept, want)
	}
	// If pages are not needed again within a decay, later runs are purged early too.
	for range 3 {
		for range oversizeTicksPerDecay + oversizeHoldTicks {
			h.pages.tickOversize()
		}
		if cycle() {
			t.Error("the run stayed, and had not come back soon")
		}
	}
}

// A heap without free memory for a long time still notices that purged pages are needed again.
func TestOversizeRunThatComesBackAfterARestStays(t *testing.T) {
	h := newHeap(t, Options{})
	for range 2 * oversizeTicksPerDecay {
		h.pages.tickOversize()
	}
	for cycle := range 2 {
		useAndFree(t, h, 64<<20)
		for range 3 {
			h.pages.tickOversize()
		}
		if kept := h.keeps() > 0; kept != (cycle == 1) {
			t.Errorf("cycle %d: the run stayed: %v", cycle, kept)
		}
	}
}

// A run whose memory the system does not take back keeps no timer running.
func TestOversizeTimerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeap(t, Options{Decay: time.Second})
		restore := refuse(vm.OpDecommit)
		useAndFree(t, h, 20<<20)
		time.Sleep(20 * h.pages.decay)
		synctest.Wait()
		if h.pages.oversize.Alarm.Set() {
			t.Error("the timer runs")
		}
		restore()
		h.Close()
	})
}

// A tick that was lost with its bubble is made up for.
func TestOversizeTimerThatWasLostIsSetAgain(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	due := &h.pages.oversize.Alarm.due
	due.Store(1)
	useAndFree(t, h, 20<<20)
	if got := due.Load(); got < time.Now().UnixNano() {
		t.Errorf("the timer is due at %d", got)
	}
}

// Only clean pages count as needed again. A block on pages that still hold memory does not
// count.
func TestPagesThatHoldMemoryDoNotComeBack(t *testing.T) {
	h := newHeap(t, Options{})
	useAndFree(t, h, 64<<20)
	for range 3 {
		h.pages.tickOversize()
	}
	useAndFree(t, h, 7<<20)
	o := &h.pages.oversize
	back := o.back
	if o.sent == 0 || back == 0 {
		t.Fatalf("%d pages went, %d came back", o.sent, back)
	}
	for range 5 {
		useAndFree(t, h, 7<<20)
	}
	if o.back != back {
		t.Errorf("%d pages came back, want %d", o.back, back)
	}
}

// A long run with little memory is not oversize.
func TestLongRunWithLittleMemoryStays(t *testing.T) {
	h := newHeap(t, Options{})
	whole, _ := alloc(t, h, 62<<20), alloc(t, h, 40000)
	large, _ := alloc(t, h, 10<<20), alloc(t, h, 40000)
	little, ok := h.Resize(whole, 2<<20)
	if !ok {
		t.Fatal("a block did not shrink")
	}
	h.Trim()
	h.Free(little)
	h.Free(large)
	for range 3 {
		h.pages.tickOversize()
	}
	of := func(b []byte) uintptr { return SpanAt(addrOf(b)).dirty * PageBytes }
	if of(little) != 2<<20 || of(large) != 0 {
		t.Errorf("%d bytes are left of the 2 MiB in a long run, %d of 10 MiB in a short one", of(little), of(large))
	}
}

// The pages that ticks purged add up until they are judged.
func TestWhatTicksGaveBackAddsUp(t *testing.T) {
	h := newHeap(t, Options{})
	o := &h.pages.oversize
	useAndFree(t, h, 10<<20)
	h.pages.tickOversize()
	o.sent = 5000
	h.pages.tickOversize()
	if want := uintptr(5000 + 10<<20/PageBytes); o.sent != want {
		t.Errorf("%d pages went, want %d", o.sent, want)
	}
}

// The timer runs while a later tick may have something to do.
func TestOversizeTimerRunsWhileThereIsWork(t *testing.T) {
	for _, tt := range []struct {
		hold, age int
		sent      uintptr
		busy      bool
		dirty     uintptr
		want      bool
	}{
		{want: false},
		{hold: 1, want: false}, // the last tick of the hold
		{hold: 2, want: true},
		{sent: 100, want: true},
		{sent: 100, age: oversizeTicksPerDecay - 1, want: false},
		{busy: true, want: true},
		{dirty: oversizePages, want: true}, // less was free at some moment since the last tick
	} {
		h := newHeap(t, Options{Decay: never})
		o := &h.pages.oversize
		o.hold, o.age, o.sent, o.busy, o.dirty = tt.hold, tt.age, tt.sent, tt.busy, tt.dirty
		h.pages.tickOversize()
		o.dirty, o.least = 0, 0
		if got := o.Alarm.Set(); got != tt.want {
			t.Errorf("%+v: the timer runs: %v", tt, got)
		}
	}
}

// The limit is half of the purged pages, needed again within a decay of ten ticks.
func TestJudgedByHalfWithinADecay(t *testing.T) {
	for _, tt := range []struct {
		sent, back uintptr
		age        int
		hold       int
		left       uintptr
	}{
		{100, 49, 0, 0, 100},
		{100, 50, 0, oversizeHoldTicks, 0},
		{100, 100, 0, oversizeHoldTicks, 0},
		{100, 49, oversizeTicksPerDecay - 2, 0, 100},
		{100, 49, oversizeTicksPerDecay - 1, 0, 0},
		{0, 0, 0, 0, 0},
	} {
		o := oversize{sent: tt.sent, back: tt.back, age: tt.age}
		o.judge()
		if o.hold != tt.hold || o.sent != tt.left || o.back > o.sent {
			t.Errorf("%d of %d pages back at age %d: hold %d, %d of %d sent, want hold %d, %d sent", tt.back, tt.sent, tt.age, o.hold, o.back, o.sent, tt.hold, tt.left)
		}
	}
}
