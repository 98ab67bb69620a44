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
	pressure   Pressure      // of the process and its account
	own        Level         // of the process alone
	rise       int64         // off-heap memory may grow by this before the level rises
	next       time.Time     // no round before, unless the level rises or becomes Calm
	pause      time.Duration // between rounds while own is Hard
	roundCount uint64
}

// note finds the pressure from the process's figures, from the level that the kernel signals, and
// from the state of the process's account. It reports whether a round is due.
func (a *alarm) note(f figures, signaled Level, account pressure.State, now time.Time) (due bool) {
	room, needed := f.limit-f.headroom, f.needed()
	p := pressure.Of(needed, room, a.own, signaled)
	level := max(p.Level, account.Level)
	reachesLimit := p.Level == Hard && a.own < Hard
	rises := level > a.pressure.Level || reachesLimit
	ends := level == Calm && a.pressure.Level > Calm
	a.pressure, a.own = Pressure{level, max(p.Wanted, account.Wanted)}, p.Level
	a.rise = pressure.Rise(needed, room, level)
	if reachesLimit {
		a.pause = tickTime
	}
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
	if a.own == Hard {
		a.next = now.Add(a.pause)
	}
}
