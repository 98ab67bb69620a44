// Crossing: the rounds of an account that is short of memory, and the lines about its level.
//
// The level of an account follows from its own limits. alarm.go has the level of the budget. The
// process's account has a leader, the budget (payer.go). It has neither rounds nor lines of its own:
// Changed and noteLine leave them to the alarm. Account.Close ends the rounds and lines of other
// accounts.
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

// Changed wakes the rounds, or the leader's ticks, if they have something to do. It wants to learn
// of more changes until the callbacks know of Calm.
func (w watcher) Changed(before Level, now pressure.State) (more bool) {
	a, level := w.a, now.Level
	if level == Calm && before == Calm && a.reported.level == Calm {
		return false
	}
	changes := level > before || level == Calm && before > Calm
	a.noteLine(before, level)
	switch {
	case a.leader != nil:
		if changes {
			a.leader.wake()
		}
	case level == Calm && a.reported.level == Calm || len(a.callbacks.list()) == 0: // no one to call
	case changes:
		a.rounds.wake()
	default:
		a.rounds.within(roundTime)
	}
	return a.reported.level > Calm
}

// round does one round. next is the time to another one, or 0 once the callbacks know of Calm.
func (a *Account) round() (next time.Duration) {
	a.trimWhileShort()
	call := false
	a.node.Locked(func(s pressure.State) {
		a.rounds.drop() // this round tells of the change that woke it
		call = a.reported.startRound(s.Level)
	})
	a.roundCount.Add(1)
	if call {
		a.callbacks.tell(a.currentPressure, a.trimWhileShort, a.node.Closed)
	}
	a.node.Locked(func(pressure.State) {
		if len(a.callbacks.list()) == 0 { // no one to tell of Calm
			a.reported.level = Calm
		}
		if a.reported.level > Calm {
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

// noteLine schedules a line if the level has changed and differs from the last line. The leader
// writes the lines of the process's account. The node is locked.
func (a *Account) noteLine(before, level Level) {
	if level == before || a.logger == nil || a.leader != nil {
		return
	}
	if due, wait := a.reported.lineDue(level, a.lines.now()); due {
		a.lines.wake()
	} else if wait > 0 {
		a.lines.within(wait)
	}
}

// logLevel writes a line if the level differs from the last line. For a fall that is too recent,
// next is the time until it may be logged.
func (a *Account) logLevel() (next time.Duration) {
	a.trimWhileShort()
	st := a.Stats()
	level := st.Pressure.Level
	due := false
	a.node.Locked(func(pressure.State) {
		if due, next = a.reported.lineDue(level, a.lines.now()); due {
			a.reported.logged = level
		}
	})
	if !due || st.Closed {
		return next
	}
	defer a.callbacks.catch("AccountOptions.Logger")
	logPressure(a.logger, st.Pressure, "account", st)
	return 0
}
