// Crossing: the rounds of an account that is short of memory, and the lines about its level.
//
// The charge that crosses a limit wakes a round, in a goroutine of its own. A round trims the heaps
// and calls the functions of OnPressure. The next one follows each second until the pressure is
// over. An account has no goroutine between rounds, and no timer while it is calm.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// watcher is an account as its node sees it.
type watcher struct{ a *Account }

// crossed has the account's own account of its state. The node's lock guards it: Changed and
// Node.Locked hold that.
type crossed struct {
	told   Level     // that the callbacks know
	logged Level     // of the last line
	fell   time.Time // when the level fell below logged
}

// Changed wakes the rounds, or the leader's ticks, if they have something to do.
func (w watcher) Changed(before Level, now pressure.State) (more bool) {
	a, level := w.a, now.Level
	if level == Calm && before == Calm && a.crossed.told == Calm {
		return false
	}
	changes := level > before || level == Calm && before > Calm
	a.noteLine(before, level)
	switch {
	case a.leader != nil:
		if changes {
			a.leader.wake()
		}
	case level == Calm && a.crossed.told == Calm || len(a.callbacks.list()) == 0:
	case changes:
		a.rounds.wake()
	default:
		a.rounds.within(roundTime)
	}
	return a.crossed.told > Calm
}

// round is a turn of rounds. Another one follows until the callbacks know that the pressure is
// over.
func (a *Account) round() (next time.Duration) {
	a.trimWhileShort()
	tell := false
	a.node.Locked(func(s pressure.State) {
		a.rounds.drop() // this round tells of the change that woke it
		tell = s.Level > Calm || a.crossed.told > Calm
		a.crossed.told = s.Level
	})
	a.rounded.Add(1)
	if tell {
		a.callbacks.tell(a.look, a.trimWhileShort, a.node.Closed)
	}
	a.node.Locked(func(pressure.State) {
		if len(a.callbacks.list()) == 0 {
			a.crossed.told = Calm
		}
		if a.crossed.told > Calm {
			next = roundTime
		}
	})
	return next
}

// trimWhileShort trims the heaps of a and of the accounts below until a is calm.
func (a *Account) trimWhileShort() {
	a.trim(func() bool { return a.look().Level == Calm })
}

// look returns the pressure.
func (a *Account) look() Pressure { return Pressure(a.node.Look()) }

// noteLine has a line written if the level has changed and the Logger knows another one. The lines
// of the process's account are the leader's. The node is locked.
func (a *Account) noteLine(before, level Level) {
	c := &a.crossed
	switch {
	case level == before || a.logger == nil || a.leader != nil:
	case level > c.logged:
		a.lines.wake()
	case level < c.logged && before >= c.logged:
		c.fell = a.lines.now()
		a.lines.within(fallTime)
	}
}

// logLevel is a turn of lines: it writes a line if the Logger knows another level.
func (a *Account) logLevel() (next time.Duration) {
	a.trimWhileShort()
	st := a.Stats()
	level := st.Pressure.Level
	var before Level
	a.node.Locked(func(pressure.State) {
		c := &a.crossed
		before = c.logged
		now, falls := a.lines.now(), c.fell.Add(fallTime)
		if level < before && pressure.Ahead(now, falls) {
			next = falls.Sub(now)
			return
		}
		c.logged = level
	})
	if next > 0 || level == before || st.Closed {
		return next
	}
	defer a.callbacks.catch("AccountOptions.Logger")
	logPressure(a.logger, st.Pressure, "account", st)
	return 0
}
