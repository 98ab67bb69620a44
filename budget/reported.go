// Reported: the levels that callbacks and a Logger know.

package budget

import (
	"context"
	"log/slog"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// fallTime is how long a level must stay lower before its fall is logged. So a cache at its limit,
// whose level often rises and falls, writes one line.
const fallTime = 10 * time.Second

// reported has the levels that a budget or an account last reported.
type reported struct {
	level  Level     // to the callbacks, in the last round
	logged Level     // to the Logger
	fell   time.Time // when the level fell below logged; zero if it is not below
}

// startRound notes the level of a round that begins. It reports whether the round calls the
// callbacks: if the level is above Calm, or was at the last round.
func (r *reported) startRound(level Level) (call bool) {
	call = level > Calm || r.level > Calm
	r.level = level
	return call
}

// lineDue reports whether a line about a level is due, and notes when the level falls. A rise is
// due at once. A fall is due when it has lasted fallTime; before that, wait is the rest of the
// time.
func (r *reported) lineDue(level Level, now time.Time) (due bool, wait time.Duration) {
	if level >= r.logged {
		r.fell = time.Time{}
		return level > r.logged, 0
	}
	if r.fell.IsZero() {
		r.fell = now
	}
	if ends := r.fell.Add(fallTime); pressure.Ahead(now, ends) {
		return false, ends.Sub(now)
	}
	return true, 0
}

// logPressure writes a line about a level: of is "budget" or "account", and st has its Stats.
func logPressure(l *slog.Logger, p Pressure, of string, st any) {
	level := slog.LevelWarn
	if p.Level == Calm {
		level = slog.LevelInfo
	}
	l.Log(context.Background(), level, "freehold: memory pressure", "pressure", p.Level.String(), of, st)
}
