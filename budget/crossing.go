// Crossing: what happens when an account comes to its limits.
//
//	|<- hard limit ---------------------------------------->|
//	| used                                                  |
//	                                    soft limit: soft  31/32: hard
//
// The charge that crosses finds it, and starts the rounds in a goroutine: they trim the heaps
// and call the functions of OnPressure, then and each second until it is over. An account has no
// goroutine between them, and one that is calm has no timer.

package budget

import (
	"context"
	"math"
	"time"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/heap"
)

const (
	// At a full account, the caches of those who share its limit are drained at most this
	// often. That takes a part of the time at most, and so does a search that finds too little.
	trimPause   = 10 * time.Millisecond
	searchShare = 10

	// A refused request counts in this round and the next, unless there is room for it before.
	refusedTime = roundTime + roundTime/2
)

// OnPressure has f called when the account is short of memory, until remove is called, or Close.
// The level is [Soft] above the soft limit, and [Hard] from 31/32 of the hard limit on or while a
// request is refused. What Budget.OnPressure says of priorities, deadlines, panics and repeats
// holds here; before f, the heaps of the account and of those below are trimmed.
//
// f is called within some milliseconds of the crossing (BenchmarkReaction), in a goroutine of its
// own: the call that crosses does not wait. It may allocate from the account, and may be refused.
// Wanted includes what a refused request needed. It panics if f is nil.
//
// At [Budget.Account] it is Budget.OnPressure.
func (a *Account) OnPressure(priority int, f func(context.Context, Pressure)) (remove func()) {
	a.mustBeMade("Account.OnPressure")
	if a.budget != nil {
		a.mustBeUsable("Account.OnPressure")
		return a.budget.OnPressure(priority, f)
	}
	if f == nil {
		arg.Panicf("Account.OnPressure", "f is nil")
	}
	remove = a.callbacks.add(priority, f)
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.mustBeOpen("Account.OnPressure")
	if a.pressure.Level > Calm {
		a.rounds.wake()
	}
	return remove
}

// shortage returns the account's pressure. ledger.mu is held.
func (a *Account) shortage() Pressure {
	hard := a.hard - a.hard/calmShare
	soft := a.softLimit()
	if hard != 0 {
		soft = min(soft, hard)
	}
	passed := func(l Level, begin int64) bool {
		if a.pressure.Level >= l {
			return begin != 0 && a.used > begin-begin/calmShare
		}
		return begin != 0 && a.used > begin
	}
	if a.refused > 0 && (a.hard == 0 || a.refused <= a.hard-a.used || !ahead(a.ledger.now(), a.refusedUntil)) {
		a.refused = 0
	}
	p := Pressure{}
	switch {
	case a.refused > 0 || passed(Hard, hard):
		p.Level = Hard
	case passed(Soft, soft):
		p.Level = Soft
	}
	if p.Level > Calm {
		p.Wanted = max(a.used-soft, 0) + soft/calmShare + a.refused
	}
	return p
}

// note finds the pressure, and wakes the rounds, or the ticks of the budget whose account it is, if
// they have something to do. ledger.mu is held.
func (a *Account) note() {
	before := a.pressure.Level
	a.pressure = a.shortage()
	level := a.pressure.Level
	if level == Calm && before == Calm && a.told == Calm {
		return
	}
	changes := level > before || level == Calm && before > Calm
	a.noteLine(before)
	switch {
	case a.budget != nil:
		if changes {
			a.budget.ticks.wake()
		}
	case level == Calm && a.told == Calm || len(a.callbacks.list()) == 0:
	case changes:
		a.rounds.wake()
	default:
		a.rounds.within(roundTime)
	}
}

// round trims the heaps and calls the callbacks. There is another until they know that the
// pressure is over.
func (a *Account) round() (next time.Duration) {
	a.trimWhileShort()
	a.ledger.mu.Lock()
	a.note()
	a.rounds.drop() // what woke it is for this round
	tell := a.pressure.Level > Calm || a.told > Calm
	a.told = a.pressure.Level
	a.rounded++
	a.ledger.mu.Unlock()
	if tell {
		a.callbacks.tell(a.look, a.trimWhileShort, a.closed)
	}
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if len(a.callbacks.list()) == 0 {
		a.told = Calm // nobody knows
	}
	if a.told > Calm {
		return roundTime
	}
	return 0
}

// closed reports whether Close was called.
func (a *Account) closed() bool {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	return a.final != nil
}

// trimWhileShort trims the heaps of a and those below until a is calm.
func (a *Account) trimWhileShort() {
	a.trim(func() bool { return a.look().Level == Calm })
}

// look returns the pressure.
func (a *Account) look() Pressure {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.note()
	return a.pressure
}

// makeRoom is called when an account on the way up has refused n bytes to the heap of a, which has
// given back its own free pages. It notes the refusal and has the accounts that share the full
// one's limit give back what they do not use. It reports whether another try may help.
func (a *Account) makeRoom(n int64) bool {
	enough := func() bool { return a.fullFor(n) == nil }
	if full := a.fullFor(n); full != nil {
		if b, ok := full.follows(); ok {
			b.tick() // for the limit as it is now
		}
	}
	began := a.ledger.now()
	full, search, drain := a.noteRefusal(n, began)
	if full == nil {
		return true
	}
	if search {
		full.search(n, began, drain, enough)
	}
	if b, ok := full.follows(); ok {
		b.relieve(enough)
		return true
	}
	return search
}

// search has a and those below give back free pages, until it is enough, and then what their
// caches hold if a drain is due.
func (a *Account) search(n int64, began time.Time, drain bool, enough func() bool) {
	a.eachHeap(enough, func(h *heap.Heap) { h.Purge(int(min(n, math.MaxInt))) })
	if enough() {
		return
	}
	searched := a.ledger.now()
	if drain {
		a.trim(enough)
	}
	ended := a.ledger.now()
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	a.searchNext = searched.Add(searchShare * searched.Sub(began))
	if drain {
		a.trimNext = ended.Add(max(trimPause, searchShare*ended.Sub(searched)))
	}
}

// noteRefusal notes a refusal in the account that is full, and returns that, or nil if none is
// any more. It reports whether a search and a drain are due.
func (a *Account) noteRefusal(n int64, now time.Time) (full *Account, search, drain bool) {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	full = a.full(n, 0)
	if full == nil {
		return nil, false, false
	}
	full.refusals++
	if n <= full.hard { // what never fits is no shortage
		full.refused = max(full.refused, n)
		full.refusedUntil = now.Add(refusedTime)
		full.note()
	}
	others := full != a || full.children > 0
	return full, others && !ahead(now, full.searchNext), !ahead(now, full.trimNext)
}

// fullFor returns the account that would refuse a charge of n bytes, or nil.
func (a *Account) fullFor(n int64) *Account {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	return a.full(n, 0)
}
