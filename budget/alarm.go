// Alarm: the pressure of the process, and when a round tells the callbacks of it.
//
// An alarm finds the level of the budget from the process's figures at each tick, while crossing.go
// follows the level of one account from each charge. Budget.Stop switches the rounds of the alarm
// off.
//
// A tick finds the pressure. When its level rises or becomes Calm, and each second while it is not
// Calm, a round is due (round.go). While the process itself is at its limit, the next round is due
// at the next tick, since Go's heap may fill the rest in less than a second. After a round that
// freed nothing the pause is twice as long.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// roundTime is the time between two rounds.
const roundTime = time.Second

// alarm is the pressure and the rounds about it.
type alarm struct {
	pressure   Pressure
	rise       int64         // off-heap memory may grow by this before the level rises
	danger     bool          // the process is at its limit, and not only its account
	next       time.Time     // no round before, unless the level rises or becomes Calm
	pause      time.Duration // between rounds in danger
	roundCount uint64
}

// note finds the pressure from a process's figures, from the level that the kernel signals, and
// from its account. It reports whether a round is due.
func (a *alarm) note(f figures, signaled Level, account pressure.State, now time.Time) (due bool) {
	before := a.pressure.Level
	own := before
	if !a.danger {
		own = min(own, Soft) // the level was Hard for the account alone
	}
	room, needed := f.limit-f.headroom, f.needed()
	p := pressure.Of(needed, room, own, signaled)
	level := max(p.Level, account.Level)
	a.pressure = Pressure{level, max(p.Wanted, account.Wanted)}
	a.rise = pressure.Rise(needed, room, level)
	begins := p.Level == Hard && !a.danger
	if begins {
		a.pause = tickTime
	}
	a.danger = p.Level == Hard
	rises, ends := level > before || begins, level == Calm && before > Calm
	if again := level > Calm && !pressure.Ahead(now, a.next); !rises && !ends && !again {
		return false
	}
	a.next = now.Add(roundTime)
	return true
}

// end ends a round. freed says whether it freed off-heap memory.
func (a *alarm) end(freed bool, now time.Time) {
	if a.pause = min(2*a.pause, roundTime); freed {
		a.pause = tickTime
	}
	if a.danger {
		a.next = now.Add(a.pause)
	}
}
