// Callbacks: the functions of OnPressure.
//
// Each runs in a goroutine of its own, so a function that blocks or panics stops no other.

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

// callbacks are in the order of their priorities. The zero value has none.
type callbacks struct {
	mu       lockrank.Mutex[lockrank.Leaf] // guards the fields below
	all      []*callback                   // replaced, never changed: rounds read it unlocked
	late     uint64                        // calls that passed their deadline
	panics   uint64                        // calls that panicked
	panicked string                        // message of the last panic
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

// tell calls the functions in order. current returns the pressure for each. After a function whose
// pressure was above Calm, tell calls trim. tell returns once the pressure has fallen to Calm, or
// when stopped returns true.
func (cs *callbacks) tell(current func() Pressure, trim func(), stopped func() bool) {
	was := Calm
	for _, c := range cs.list() {
		p := current()
		if stopped() || p.Level == Calm && was > Calm {
			return // the fall to Calm wakes another round, which tells the rest
		}
		was = p.Level
		cs.call(c, p)
		if was > Calm {
			trim()
		}
	}
}

// call calls a function unless its last call still runs. It waits for the function, for callTime at
// most.
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

// catch recovers and counts a panic of a function of the program. Callers defer it.
func (cs *callbacks) catch(who string) {
	r := recover()
	if r == nil {
		return
	}
	said := fmt.Sprintf("%s panicked: %v", who, r) // may call a method of the program: no lock
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.panics++
	cs.panicked = said
}

// failed returns the number of calls that passed their deadline, the number that panicked, and the
// message of the last panic.
func (cs *callbacks) failed() (late, panics uint64, panicked string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.late, cs.panics, cs.panicked
}
