// Callbacks: the functions of OnPressure, and what they cannot break.
//
// Each runs in a goroutine of its own, so that one that blocks or panics stops no other.

package budget

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// callTime is the time that a callback may take before the next one is called.
const callTime = time.Second

// callback is a function of OnPressure.
type callback struct {
	priority int
	f        func(context.Context, Pressure)
	running  atomic.Bool
}

// callbacks are in order of priority. mu guards the fields below. The zero value has none.
type callbacks struct {
	mu       lockrank.Mutex[lockrank.Leaf]
	all      []*callback // replaced as a whole, as a round may go over it
	late     uint64      // calls that passed their deadline
	panics   uint64      // calls that panicked
	panicked string      // what the last one said
}

// add adds a function until remove is called.
func (cs *callbacks) add(priority int, f func(context.Context, Pressure)) (remove func()) {
	c := &callback{priority: priority, f: f}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	all := append(slices.Clone(cs.all), c)
	slices.SortStableFunc(all, func(a, b *callback) int { return cmp.Compare(a.priority, b.priority) })
	cs.all = all
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.all = slices.DeleteFunc(slices.Clone(cs.all), func(other *callback) bool { return other == c })
	}
}

func (cs *callbacks) list() []*callback {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.all
}

// tell calls the functions in order with what look returns, until that is Calm after one was
// asked for memory, or until stopped. After one that was asked, it calls asked.
func (cs *callbacks) tell(look func() Pressure, asked func(), stopped func() bool) {
	was := Calm
	for _, c := range cs.list() {
		p := look()
		if stopped() || p.Level == Calm && was > Calm {
			return // the rest is told by the round that this wakes
		}
		was = p.Level
		cs.call(c, p)
		if was > Calm {
			asked()
		}
	}
}

// call calls a callback, unless it runs, and waits until it returns, for callTime at most.
func (cs *callbacks) call(c *callback, p Pressure) {
	if !c.running.CompareAndSwap(false, true) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	go func() {
		defer cancel()
		defer c.running.Store(false)
		defer cs.catch("a callback")
		c.f(ctx, p)
	}()
	<-ctx.Done()
	if ctx.Err() == context.DeadlineExceeded {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.late++
	}
}

// catch is deferred. It notes a panic of the program's.
func (cs *callbacks) catch(who string) {
	r := recover()
	if r == nil {
		return
	}
	said := fmt.Sprintf("%s panicked: %v", who, r) // by a method of the program's
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.panics++
	cs.panicked = said
}

// failed returns how many calls passed their deadline, how many panicked, and what the last
// of these said.
func (cs *callbacks) failed() (late, panics uint64, panicked string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.late, cs.panics, cs.panicked
}
