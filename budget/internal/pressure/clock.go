// Clock: comparing times that may be of two clocks.

package pressure

import "time"

// Ahead reports whether t is later than now by the same clock. The clock of a testing/synctest
// bubble begins in the year 2000, so times of two clocks are years apart.
func Ahead(now, t time.Time) bool {
	d := t.Sub(now)
	return 0 < d && d < 365*24*time.Hour
}
