// Alarm: the timer of a heap.

package pages

import (
	"sync/atomic"
	"time"
)

// alarm makes a new timer for each start. A timer belongs to the testing/synctest
// bubble that it was made in: resetting it outside would end the process, and it never
// fires once the bubble has ended. So callers check for missed alarms now and then.
//
//	due: 0 --start--> time --fires--> ringing --stop--> 0
//
// due is in nanoseconds of Unix time.
type alarm struct{ due atomic.Int64 }

const ringing = -1

func (a *alarm) Set() bool { return a.due.Load() != 0 }

// Missed reports whether a should have fired longer ago than since. The clock of a
// bubble begins in the year 2000, so an alarm that a bubble left is missed outside.
func (a *alarm) Missed(since time.Duration) bool {
	due := a.due.Load()
	return due > 0 && time.Now().UnixNano() > due+int64(since)
}

// start calls f after d, and cancels an earlier start. If starts race, one takes effect.
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

// Stop permits the next start. f calls it once it holds its locks. Until then the alarm is
// ringing, so Missed reports false.
func (a *alarm) Stop() { a.due.Store(0) }
