// Turns: accounts and budgets in and out of a testing/synctest bubble.

package budget

import (
	"testing"
	"testing/synctest"
	"time"
)

// A turn that a bubble swallowed is made up for, and one that is due by its clock is not waited for.
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
				a = NewAccount(nil, &AccountOptions{Hard: 100 << 20, Decay: never})
				a.Free(mustAlloc(t, a, 1<<20)) // no level is crossed
			})
			where[1](func() {
				c.got = make(chan bool, 10)
				defer told(a, c, "f")()
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
		b.collect()
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
