// Alarm: the pressure of the process, and when a round tells the callbacks of it.
//
// Each tick finds the pressure from the figures of the process and of its account. When its level
// rises or becomes Calm, and each second while it is not Calm, a round is due (round.go). While the
// level of the process alone is Hard, a second is too long: Go's heap may fill the rest. So the
// next round is due after tickTime. Each round that freed no off-heap memory doubles this pause, up
// to a second.
//
// crossing.go does the same for the level of one account, which each charge may change. Budget.Stop
// ends the rounds of the alarm.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// roundTime is the time between two rounds, unless the process is at its limit.
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
