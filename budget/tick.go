// Ticks: the budget reads its figures, and sets what follows from them.
//
// A tick reads the runtime and the heaps, and the system's figures and the limit when they are due
// (internal/pressure). A step (step.go) turns the figures into a plan. Ticks are rare while the
// process is at rest. Three events call for one: off-heap memory passes the watermark (growth.go),
// a collection ends, or the level of the process's account rises or becomes Calm (crossing.go).

package budget

import (
	"math"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

const (
	tickTime       = 5 * time.Millisecond // unless the process is at rest: see figures.pace
	restTime       = 3 * time.Second      // the longest time between ticks, at rest
	ticksPerSearch = 3                    // at rest, each third tick looks for the limit again
)

// turn is a tick that returns the time to the next one.
func (b *Budget) turn() (next time.Duration) {
	b.tick()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pace
}

// tick reads the figures and acts on them. If Go holds too much it begins a reclaim, unless the
// last one was too recent: see wait.go.
func (b *Budget) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update()
	times := b.plan.reclaimPause(b.currentHeadroom())
	_, last := b.reclaims.soFar()
	pause := time.Duration(times) * last.took
	if times > 0 && !pressure.Ahead(b.system.now(), last.ended.Add(pause)) {
		b.beginReclaim()
	}
}

// update is a tick without a reclaim. mu is held.
func (b *Budget) update() {
	if b.stopped {
		return
	}
	now := b.system.now()
	b.watch.Search(now, ticksPerSearch*b.pace)
	// charged is read before offHeap: a charge in between lowers the account's limit for a tick.
	g, charged, offHeap := b.system.golang.read(), b.charged(), b.system.offHeap()
	limit, headroom := b.watch.Limit(), b.currentHeadroom()
	b.watch.ReadIfDue(now, g.held+offHeap, limit-headroom)
	b.settings.note(setting{g.limit, g.percent})
	b.lives.note(g)
	f := figures{
		limit:      limit,
		headroom:   headroom,
		offHeap:    offHeap,
		charged:    charged,
		others:     b.watch.Others(),
		goHeap:     b.options.GoHeap,
		ofPhysical: b.watch.OfPhysical(),
		golang:     g,
		live:       b.lives.least(),
		pressed:    b.growth.taking > 0 && !pressure.Ahead(now, b.growth.shortUntil),
		userLimit:  b.settings.userLimit,
	}
	before := b.settings.current
	if b.growth.resigned { // else step raises no limit while Go holds too much
		before.limit, b.growth.resigned = math.MaxInt64, false
	}
	b.plan = step(f, before)
	b.settings.set(b.plan.setting)
	due := b.alarm.note(f, b.watch.Signaled(now), b.setAccountLimit(f), now)
	b.logLevel(now)
	if due {
		b.rounds.wake()
	}
	b.system.watermark(b.growth.watermark(b.plan, offHeap, headroom, b.alarm.rise))
	b.pace = f.pace()
	if b.plan.reclaimPause(headroom) > 0 || b.growth.taking > 0 || b.alarm.pressure.Level > Calm {
		b.pace = tickTime
	}
	b.ticks.within(b.pace)
}

// beginReclaim begins a reclaim unless the budget has stopped. mu is held.
func (b *Budget) beginReclaim() {
	if !b.stopped {
		b.reclaims.begin(b.system.golang, b.system.now)
	}
}

// reclaimAndWait begins a reclaim unless one runs, and waits for its end.
func (b *Budget) reclaimAndWait() {
	b.mu.Lock()
	b.beginReclaim()
	b.mu.Unlock()
	b.reclaims.wait()
}

// charged returns the bytes of off-heap memory that the process's account and the accounts below
// it have. mu is held.
func (b *Budget) charged() int64 {
	if b.account == nil {
		return 0
	}
	return b.account.node.Charged()
}

// setAccountLimit sets the limit of the process's account, and returns its state:
//
//	limit of the process
//	|<------------------------------------------------------------------->|
//	| the account's limit | other heaps | others | Go's floor | headroom  |
//	| charged | left      |
//
// mu is held.
func (b *Budget) setAccountLimit(f figures) pressure.State {
	if b.account == nil {
		return pressure.State{}
	}
	left := f.limit - f.headroom - f.needed()
	return b.account.node.Follow(max(f.charged+left, 1)) // 0 would be no limit
}

// currentPressure returns the pressure.
func (b *Budget) currentPressure() Pressure {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alarm.pressure
}

// hasStopped reports whether Stop was called.
func (b *Budget) hasStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}
