// Crossings: who is told, and when.

package budget

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// notes adds a callback to an account that notes its calls.
func notes(a *Account, c *calls, name string) (remove func()) {
	return a.OnPressure(0, func(_ context.Context, p Pressure) { c.note(name, p) })
}

// wait is want in a bubble, and checks that nothing more is told.
func (c *calls) wait(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if len(c.got) != len(want) {
		t.Fatalf("called %q, want %q", c.all, want)
	}
	c.want(t, want...)
}

func TestCrossingIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := newAccount(t, nil, "top", 100<<20)
		middle := newAccount(t, top, "middle", 0)
		a := newAccount(t, middle, "a", 0)
		middle.SetLimits(20<<20, 0)
		atTop, atMiddle, atA := newCalls(), newCalls(), newCalls()
		notes(top, atTop, "f")
		notes(middle, atMiddle, "f")
		notes(a, atA, "f")
		first := mustAlloc(t, a, 15<<20)
		atMiddle.wait(t)
		second := mustAlloc(t, a, 15<<20)
		atMiddle.wait(t, "f soft 10")
		third := mustAlloc(t, a, 15<<20)
		atMiddle.wait(t) // no new level
		a.Free(second)
		a.Trim()
		atMiddle.wait(t)
		a.Free(third)
		a.Trim()
		atMiddle.wait(t, "f calm 0")
		atTop.wait(t)
		more := mustAlloc(t, a, 83<<20)
		atMiddle.wait(t, "f soft 78")
		atTop.wait(t, "f hard 15") // 98 of 100, of which 85 are soft
		a.Free(more)
		a.Free(first)
		a.Trim()
		atMiddle.wait(t, "f calm 0")
		atTop.wait(t, "f calm 0")
		atA.wait(t) // has no limit
	})
}

// A round tells what happened before its look, and is not followed by another for that.
func TestRoundTellsAllThatWokeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		a := newAccount(t, nil, "a", 100<<20)
		notes(a, c, "f")
		a.rounds.begin() // a round that has not looked yet
		mustAlloc(t, a, 90<<20)
		mustAlloc(t, a, 8<<20)
		go a.rounds.run()
		c.wait(t, "f hard 15")
		a.Close()
	})
}

func TestCrossingIsToldEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		a := newAccount(t, nil, "a", 100<<20)
		b := mustAlloc(t, a, 90<<20)
		remove := notes(a, c, "f") // what is over already is told at once
		c.wait(t, "f soft 7")
		time.Sleep(roundTime)
		c.wait(t, "f soft 7")
		more := mustAlloc(t, a, 8<<20)
		c.wait(t, "f hard 15") // a rise does not wait
		remove()
		time.Sleep(2 * roundTime)
		c.wait(t)
		notes(a, c, "g")
		c.wait(t, "g hard 15")
		time.Sleep(roundTime)
		c.wait(t, "g hard 15")
		a.Free(b)
		a.Free(more)
		a.Trim()
		c.wait(t, "g calm 0")
		if st := a.Stats(); st.Rounds < 5 || st.Pressure.Level != Calm {
			t.Errorf("%+v", st)
		}
		time.Sleep(10 * roundTime)
		c.wait(t)
	})
}

// A refused request is told with the bytes that it wanted, and is over when there is room.
func TestRefusalIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		top := newAccount(t, nil, "top", 100<<20)
		a := newAccount(t, top, "a", 0)
		live := mustAlloc(t, a, 50<<20)
		spare := make(chan []byte, 1)
		top.OnPressure(1, func(_ context.Context, p Pressure) {
			c.note("first", p)
			if p.Level == Calm {
				return
			}
			if b, ok := <-spare; ok {
				a.Free(b)
			}
		})
		top.OnPressure(2, func(_ context.Context, p Pressure) { c.note("second", p) })
		_, err := a.Alloc(60<<20, 8)
		wantFull(t, err, top)
		spare <- live // now, or the request might have had it
		close(spare)
		c.wait(t, "first hard 62", "first calm 0", "second calm 0")
		a.Free(mustAlloc(t, a, 60<<20))
		_, err = a.Alloc(101<<20, 8) // never fits
		wantFull(t, err, top)
		wantFull(t, take(a, 101<<20), top)
		c.wait(t)
		mustTake(t, top, 60<<20)
		wantFull(t, take(top, 50<<20), top)
		c.wait(t, "first hard 52", "second hard 52") // nobody can help
		time.Sleep(roundTime)
		c.wait(t, "first hard 52", "second hard 52")
		time.Sleep(roundTime)
		c.wait(t, "first calm 0", "second calm 0")
		give(top, 60<<20)
	})
}

func TestAccountCallbacksThatPanicBlockOrAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		a := newAccount(t, nil, "a", 100<<20)
		release := make(chan bool)
		var own []byte
		a.OnPressure(1, func(context.Context, Pressure) { panic("oh") })
		a.OnPressure(2, func(context.Context, Pressure) { <-release })
		a.OnPressure(3, func(_ context.Context, p Pressure) {
			own = mustAlloc(t, a, 1<<20) // from the account that is short
			_, err := a.AllocOrEvict(50<<20, 8, func(int) int { return 0 })
			wantFull(t, err, a)
			c.note("f", p)
		})
		b := mustAlloc(t, a, 90<<20)
		time.Sleep(callTime + roundTime/2)
		c.wait(t, "f soft 7", "f hard 58") // as its request was refused
		time.Sleep(roundTime)
		c.wait(t, "f hard 59") // which is no rise
		if st := a.Stats(); st.Panics != 3 || st.Late != 1 || st.Problem != "a callback panicked: oh" || st.Pressure.Level != Hard {
			t.Errorf("%+v", st)
		}
		close(release)
		a.Close()
		_, _ = own, b
	})
}

func TestCloseEndsTheRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		a := newAccount(t, nil, "a", 100<<20)
		release := make(chan bool)
		a.OnPressure(1, func(_ context.Context, p Pressure) { c.note("f", p); <-release })
		a.OnPressure(2, func(_ context.Context, p Pressure) { c.note("late", p) })
		mustAlloc(t, a, 90<<20)
		c.wait(t, "f soft 7")
		a.Close()
		close(release)
		time.Sleep(10 * roundTime)
		c.wait(t) // and no goroutine is left, or the bubble would not end
	})
}

// What a trim ends is not told, nor does it call a round that has nothing to tell.
func TestCrossingAfterOneThatATrimHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls()
		top := newAccount(t, nil, "top", 100<<20)
		a, b := newAccount(t, top, "a", 0), newAccount(t, top, "b", 0)
		notes(top, c, "f")
		a.Free(mustAlloc(t, a, 60<<20))
		mustAlloc(t, b, 30<<20)
		c.wait(t)
		mustAlloc(t, b, 60<<20)
		c.wait(t, "f soft 7")
		more := mustAlloc(t, a, 8<<20)
		c.wait(t, "f hard 15")
		a.Free(more)
		a.Trim()
		c.wait(t) // a fall to soft is no news
		if level := top.Stats().Pressure.Level; level != Soft {
			t.Errorf("level is %v", level)
		}
		time.Sleep(roundTime)
		c.wait(t, "f soft 7")
	})
}

func TestThereAreNoRoundsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, nil, "a", 100<<20)
		mustAlloc(t, a, 99<<20)
		time.Sleep(10 * roundTime)
		if st := a.Stats(); st.Rounds != 0 || st.Pressure.Level != Hard {
			t.Errorf("%+v", st)
		}
		remove := notes(a, newCalls(), "f")
		synctest.Wait()
		remove()
		time.Sleep(10 * roundTime)
		if n := a.Stats().Rounds; n != 2 { // that for f, and the one that finds nobody
			t.Errorf("%d rounds, want 2", n)
		}
	})
}
