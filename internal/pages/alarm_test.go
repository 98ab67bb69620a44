// Alarm: when a timer is set, in and out of a testing/synctest bubble.

package pages

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The timer runs as long as free pages hold memory.
func TestTimerRunsUntilFreePagesAreGivenBack(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	h.Free(alloc(t, h, 1<<20))
	for range 10 {
		h.Tick()
		if h.pages.dirty > 0 && !h.pages.Alarm.Set() {
			t.Fatalf("asleep with %d free pages of memory", h.pages.dirty)
		}
	}
	if h.pages.dirty > 0 || h.pages.Alarm.Set() {
		t.Errorf("%d free pages of memory, awake: %v", h.pages.dirty, h.pages.Alarm.Set())
	}
}

// One alarm is set at a time, however late its callback runs. A replaced alarm does nothing.
func TestAlarmDoesNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a alarm
		var rang atomic.Int32
		ring := func() { rang.Add(1) } // a callback that has not called Stop yet
		a.start(time.Second, ring)
		time.Sleep(time.Minute)
		if !a.Set() || a.Missed(time.Second) || rang.Load() != 1 {
			t.Errorf("a waiting alarm: set %v, missed %v, rang %d times", a.Set(), a.Missed(time.Second), rang.Load())
		}
		a.Stop()
		if a.Set() {
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

// An alarm is missed once it is overdue by more than the given duration.
func TestAlarmIsMissedAfterAWhile(t *testing.T) {
	var a alarm
	for late, want := range map[time.Duration]bool{-time.Hour: false, time.Minute: false, 2 * time.Hour: true} {
		a.due.Store(time.Now().Add(-late).UnixNano())
		if got := a.Missed(time.Hour); got != want {
			t.Errorf("%v late: missed: %v", late, got)
		}
	}
}
