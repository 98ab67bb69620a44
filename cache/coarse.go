// Coarse clock: the current second, from a word that all readers load.
//
//	coarse   0    --look--> asked | second --look--> second --timer--> 0
//	              |----------------- second -----------------|--margin--|
//
// Reading the system's clock costs as much as a search of the index. So the first call of now in
// each second stores the second in coarse and sets a timer. The timer clears coarse margin before
// the second ends. From then on all calls look at the system's clock, until the next second begins.
// So a timer that is late by less than half of margin does no harm. It is later if the process was
// stopped, or waited long for a processor. Then reads may find expired entries until the timer has
// run, also after a read that looked at the system's clock; the runtime runs due timers first.
//
// No timer runs while nothing calls now. Each second has its own timer, as sweeps have: see
// timer.go. A timer that was set in a testing/synctest bubble does not fire once the bubble has
// ended. So a clock that was made in a bubble has no coarse second, and a call from a bubble sets
// none. The clock knows a bubble by its time, which begins in the year 2000.

package cache

import (
	"math"
	"time"
)

const (
	margin        = time.Second / 16
	asked  uint32 = 1 << 31        // in coarse: the bit of a second for which a timer is being set
	exact  uint32 = math.MaxUint32 // in coarse: every call looks at the system's clock
)

// now returns the current second.
func (c *clock) now() uint32 {
	if s := c.coarse.Load(); s-1 < asked-1 {
		return s
	}
	return c.look()
}

// look returns the current second by the system's clock. If the second has more than margin left,
// look makes it coarse until then.
func (c *clock) look() uint32 {
	t := c.since(c.begin)
	s := secondAt(t)
	left := time.Second - t%time.Second - margin
	if left > 0 && t >= 0 && c.coarse.CompareAndSwap(0, asked|s) {
		coarse := c.coarse
		c.after(left, func() {
			if !coarse.CompareAndSwap(asked|s, 0) {
				coarse.CompareAndSwap(s, 0)
			}
		})
		if c.since(c.begin)-t < margin/4 { // else the timer was set late
			c.coarse.CompareAndSwap(asked|s, s)
		}
	}
	return s
}
