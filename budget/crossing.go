// Crossing: the rounds of an account that is short of memory, and the lines about its level.
//
// This file tells the level of one account, by the account's own limits, while alarm.go tells the
// level of the budget. An account with a leader, the process's, has neither rounds nor lines of its
// own: Changed and noteLine switch them off, and the alarm takes their place. Account.Close ends
// them for any other account.
//
// The charge that crosses a limit wakes a round, in a goroutine of its own. A round trims the heaps
// and calls the functions of OnPressure. Another one follows every second until the level is Calm.
// An account has no goroutine between rounds, and no timer while it is calm.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// watcher is an account as its node's limits.Watcher.
type watcher struct{ a *Account }

// crossed has the levels that were told to the callbacks and to the Logger. The tree's lock guards
// it: Changed and Node.Locked hold that lock.
type crossed struct {
	told   Level     // last told to the callbacks
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

// round does one round. next is the time to another one, or 0 once the callbacks were told of Calm.
func (a *Account) round() (next time.Duration) {
	a.trimWhileShort()
	tell := false
	a.node.Locked(func(s pressure.State) {
		a.rounds.drop() // this round tells of the change that woke it
		tell = s.Level > Calm || a.crossed.told > Calm
		a.crossed.told = s.Level
	})
	a.roundCount.Add(1)
	if tell {
		a.callbacks.tell(a.currentPressure, a.trimWhileShort, a.node.Closed)
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
	a.trim(func() bool { return a.currentPressure().Level == Calm })
}

// currentPressure returns the pressure.
func (a *Account) currentPressure() Pressure { return Pressure(a.node.State()) }

// noteLine schedules a line if the level has changed and differs from the last line: at once for a
// rise, after fallTime for a fall. The leader writes the lines of the process's account. The node
// is locked.
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

// logLevel writes a line if the level differs from the last line. For a fall that is too recent,
// next is the time until it may be logged.
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
