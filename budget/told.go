// Told: the levels that callbacks and a Logger know.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// fallTime is how long a level must stay lower before its fall is logged. So a cache at its limit,
// whose level often rises and falls, writes one line.
const fallTime = 10 * time.Second

// told is the levels that an account or a budget has told of.
type told struct {
	level  Level     // of the last round
	logged Level     // of the last line
	fell   time.Time // when the level fell below logged; zero if it is not below
}

// round notes the level of a round that begins. It reports whether the callbacks are to be called:
// the level is above Calm, or was at the last round.
func (t *told) round(level Level) (call bool) {
	call = level > Calm || t.level > Calm
	t.level = level
	return call
}

// line reports whether a line about a level is due. A rise is due at once. A fall is due when it
// has lasted fallTime; before that, wait is the rest of the time.
func (t *told) line(level Level, now time.Time) (due bool, wait time.Duration) {
	if level >= t.logged {
		t.fell = time.Time{}
		return level > t.logged, 0
	}
	if t.fell.IsZero() {
		t.fell = now
	}
	if ends := t.fell.Add(fallTime); pressure.Ahead(now, ends) {
		return false, ends.Sub(now)
	}
	return true, 0
}
