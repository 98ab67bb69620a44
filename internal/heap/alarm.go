// Alarm: the timer of a heap at work. A heap at rest has none.

package heap

import (
	"sync/atomic"
	"time"
)

// alarm is a timer that is made anew each time. One that is reset would belong to
// the testing/synctest bubble that it was made in, and end the process outside
// of it. One that was made in a bubble never fires once the bubble has ended.
type alarm struct{ due atomic.Int64 } // when it fires, in nanoseconds of Unix time; 0 if it is not set

func (a *alarm) set() bool { return a.due.Load() != 0 }

// lost reports whether a should have fired that long ago. The clock of a bubble
// begins in the year 2000, so outside it soon has.
func (a *alarm) lost(since time.Duration) bool {
	due := a.due.Load()
	return due != 0 && time.Now().UnixNano() > due+int64(since)
}

// start has f called after d, unless another start does at the same moment.
func (a *alarm) start(d time.Duration, f func()) {
	old := a.due.Load()
	if a.due.CompareAndSwap(old, time.Now().Add(d).UnixNano()) {
		time.AfterFunc(d, f)
	}
}

// fired is what f does first.
func (a *alarm) fired() { a.due.Store(0) }
