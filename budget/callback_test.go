package budget

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Callbacks of one priority are called in the order of their registration, and those behind
// the one that has freed enough are not.
func TestCallbacksBehindTheLastThatIsNeeded(t *testing.T) {
	const callbacksOfOne = 5
	var cs callbacks
	var called []string
	level := Hard
	add := func(priority int, name string, after Level) {
		cs.add(priority, func(_ context.Context, p Pressure) {
			called = append(called, fmt.Sprint(name, " ", p.Level))
			level = after
		})
	}
	add(2, "last", Calm)
	add(3, "none", Hard)
	var want []string
	for i := range callbacksOfOne {
		add(1, fmt.Sprint(i), Soft)
		want = append(want, fmt.Sprint(i, " soft"))
	}
	want[0] = "0 hard"
	want = append(want, "last soft")
	asked := 0
	cs.tell(func() Pressure { return Pressure{Level: level} }, func() { asked++ }, func() bool { return false })
	if !slices.Equal(called, want) || asked != len(want) {
		t.Errorf("called %q and asked %d times, want %q", called, asked, want)
	}
}

// asks is a value whose text takes the lock of the callbacks, as an Account's does. That of a
// FullError takes its account's, under which others take this one.
type asks struct{ cs *callbacks }

func (a asks) String() string {
	if !a.cs.mu.TryLock() {
		return "nothing, as it waits forever"
	}
	defer a.cs.mu.Unlock()
	return "its text"
}

func TestTextOfAPanicIsMadeWithoutALock(t *testing.T) {
	var cs callbacks
	cs.add(1, func(context.Context, Pressure) { panic(asks{&cs}) })
	cs.tell(func() Pressure { return Pressure{Level: Soft} }, func() {}, func() bool { return false })
	if _, panics, said := cs.failed(); panics != 1 || said != "a callback panicked: its text" {
		t.Errorf("%d panics, %q", panics, said)
	}
}

// A round calls those that were there when it began, whatever the callbacks add and remove.
func TestCallbacksThatChangeDuringARound(t *testing.T) {
	const most = 9 // lists with and without room behind them
	for n := range most {
		for at := range n {
			for _, adds := range []bool{false, true} {
				var cs callbacks
				called := make([]int, n)
				var remove []func()
				for i := range n {
					remove = append(remove, cs.add(i, func(context.Context, Pressure) {
						if called[i]++; i != at {
							return
						}
						if adds {
							cs.add(-1, func(context.Context, Pressure) { t.Error("called before it was added") })
							return
						}
						for _, f := range remove {
							f()
						}
					}))
				}
				cs.tell(func() Pressure { return Pressure{Level: Hard} }, func() {}, func() bool { return false })
				for i, times := range called {
					if times != 1 {
						t.Errorf("callback %d of %d is called %d times, and %d changes them", i, n, times, at)
					}
				}
				want := 0
				if adds {
					want = n + 1
				}
				if left := len(cs.list()); left != want {
					t.Errorf("%d callbacks are left, want %d", left, want)
				}
			}
		}
	}
}
