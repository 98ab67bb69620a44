// Turns: accounts and budgets in and out of a testing/synctest bubble.

package budget

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// rest waits until no turn runs.
func (t *turns) rest() {
	for running := true; running; runtime.Gosched() {
		t.mu.Lock()
		running = t.runs
		t.mu.Unlock()
	}
}

// A turn that a bubble swallowed is made up for, and one that is due by its clock is not waited
// for.
func TestTurnsInAndOutOfABubble(t *testing.T) {
	ran := make(chan bool, 10)
	w := turns{do: func() time.Duration { ran <- true; return 0 }, now: time.Now, after: afterFunc}
	synctest.Test(t, func(*testing.T) {
		w.within(time.Hour)
		w.within(2 * time.Hour) // due before
		time.Sleep(time.Hour)
		synctest.Wait()
		w.within(time.Hour)
	})
	if len(ran) != 1 {
		t.Errorf("%d turns in the bubble, want 1", len(ran))
	}
	<-ran
	w.within(time.Millisecond)
	<-ran
	w.rest()
	w.within(time.Hour)
	synctest.Test(t, func(*testing.T) {
		w.within(2 * time.Hour)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
	})
	if len(ran) != 1 {
		t.Errorf("%d turns in the second bubble, want 1", len(ran))
	}
}

// A turn begins when it was last asked for, and at no time that was asked for before.
func TestTurnsBeginWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		during := func() {}
		w := turns{do: func() time.Duration { ran.Add(1); during(); return 0 }, now: time.Now, after: afterFunc}
		for _, tt := range []struct {
			name        string
			ask, during func()
			now, ever   int32 // turns
		}{
			{name: "one that is due before", ask: func() { w.within(2 * time.Hour); w.within(time.Hour) }, ever: 1},
			{name: "now", ask: func() { w.within(time.Hour); w.wake() }, now: 1, ever: 1},
			{name: "later while one runs", ask: w.wake, during: func() { w.within(time.Hour) }, now: 1, ever: 1},
			{name: "another wake", ask: w.wake, during: w.wake, now: 2, ever: 2},
			{name: "a wake that was dropped", ask: w.wake, during: func() { w.wake(); w.drop() }, now: 1, ever: 1},
			{name: "the end, with wakes around it", ask: w.wake, during: func() { w.wake(); w.end(); w.wake() }, now: 1, ever: 1},
			{name: "after the end", ask: func() { w.within(time.Hour); w.wake() }},
		} {
			ran.Store(0)
			during = func() {
				if ran.Load() == 1 && tt.during != nil {
					tt.during()
				}
			}
			tt.ask()
			synctest.Wait()
			if n := ran.Load(); n != tt.now {
				t.Errorf("%s: %d turns begin at once, want %d", tt.name, n, tt.now)
			}
			time.Sleep(3 * time.Hour)
			synctest.Wait()
			if n := ran.Load(); n != tt.ever {
				t.Errorf("%s: %d turns, want %d", tt.name, n, tt.ever)
			}
		}
	})
}

// A round that a bubble has swallowed is made up for when the account is used again.
func TestRoundsGoOnAfterABubble(t *testing.T) {
	a := NewAccount(nil, &AccountOptions{MaxBytes: 100 << 20, Decay: never})
	defer a.Close()
	var told atomic.Int32
	a.OnPressure(0, func(context.Context, Pressure) { told.Add(1) })
	synctest.Test(t, func(t *testing.T) {
		mustAlloc(t, a, 90<<20)
		synctest.Wait()
	})
	synctest.Test(t, func(t *testing.T) { // by whose clock that round is due in a second
		time.Sleep(roundTime)
		mustAlloc(t, a, 1<<20)
		time.Sleep(roundTime)
		synctest.Wait()
	})
	if n := told.Load(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// Each collection is told, until there is no more to tell.
func TestOnCycle(t *testing.T) {
	var told atomic.Int32
	onCycle(func() (more bool) { return told.Add(1) < 3 })
	for end := time.Now().Add(5 * time.Minute); told.Load() < 3; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%d collections told, want 3", told.Load())
		}
	}
}

// What is told at a limit is told in and out of a bubble, wherever the account was made.
func TestAccountInAndOutOfABubble(t *testing.T) {
	inBubble := func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }
	outside := func(f func()) { f() }
	for name, where := range map[string][3]func(func()){
		"made inside":      {inBubble, outside, outside},
		"used inside":      {outside, inBubble, outside},
		"closed inside":    {outside, outside, inBubble},
		"three bubbles":    {inBubble, inBubble, inBubble},
		"inside, then out": {inBubble, inBubble, outside},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCalls()
			var a *Account
			where[0](func() {
				a = NewAccount(nil, &AccountOptions{MaxBytes: 100 << 20, Decay: never})
				a.Free(mustAlloc(t, a, 1<<20)) // no level is crossed
			})
			where[1](func() {
				c.got = make(chan bool, 10)
				defer notes(a, c, "f")()
				b := mustAlloc(t, a, 90<<20)
				c.want(t, "f soft 7")
				a.Free(b)
				a.Trim()
				c.want(t, "f calm 0")
			})
			where[2](func() {
				mustAlloc(t, a, 99<<20)
				a.Close()
			})
		})
	}
}

// A bubble with a budget has its clock, and ends whether the budget was stopped or not.
func TestBudgetInAndOutOfABubble(t *testing.T) {
	start := func() *Budget {
		b, err := Start(&Options{Limit: 8 << 30})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	look := func(b *Budget) {
		a := b.Account()
		a.Free(mustAlloc(t, a, 1<<20))
		b.reclaimAndWait()
		b.tick()
	}
	synctest.Test(t, func(*testing.T) {
		b := start()
		time.Sleep(time.Minute)
		look(b)
		b.Account().Close()
		b.Stop()
	})
	var b *Budget
	synctest.Test(t, func(*testing.T) { b = start(); time.Sleep(time.Minute) })
	look(b)
	synctest.Test(t, func(*testing.T) { look(b) })
	look(b)
	b.Account().Close()
	b.Stop()
}
