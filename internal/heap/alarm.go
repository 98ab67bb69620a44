// Alarm: the timer of a heap at work. A heap at rest has none.

package heap

import (
	"sync/atomic"
	"time"
)

// alarm is a timer that is made anew each time. One that is reset would belong to
// the testing/synctest bubble that it was made in, and end the process outside
// of it. One that was made in a bubble never fires once the bubble has ended.
//
// due is when it fires, in nanoseconds of Unix time; 0 if it is not set, and
// ringing from then until stop.
type alarm struct{ due atomic.Int64 }

const ringing = -1

func (a *alarm) set() bool { return a.due.Load() != 0 }

// missed reports whether a should have fired that long ago. The clock of a bubble
// begins in the year 2000, so outside it soon has.
func (a *alarm) missed(since time.Duration) bool {
	due := a.due.Load()
	return due > 0 && time.Now().UnixNano() > due+int64(since)
}

// start has f called after d, in place of what was set before. It is no-op if
// another start comes at the same moment.
func (a *alarm) start(d time.Duration, f func()) {
	old, due := a.due.Load(), time.Now().Add(d).UnixNano()
	if a.due.CompareAndSwap(old, due) {
		time.AfterFunc(d, func() {
			if a.due.CompareAndSwap(due, ringing) {
				f()
			}
		})
	}
}

// stop is what f calls when it begins its work: start may set the next alarm. An
// f that waits for a lock must not look like one that was missed.
func (a *alarm) stop() { a.due.Store(0) }
