// Clock: compares times that may come from different clocks.

package pressure

import "time"

// Ahead reports whether t is later than now and from the same clock. The clock of a
// testing/synctest bubble begins in the year 2000, so times of different clocks are years apart.
func Ahead(now, t time.Time) bool {
	d := t.Sub(now)
	return 0 < d && d < 365*24*time.Hour
}
