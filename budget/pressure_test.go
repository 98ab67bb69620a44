// Callbacks: their order and times, and callbacks that block, panic or call back.

package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/test/cgroups"
)

// calls is what callbacks were told, in order.
type calls struct {
	mu  sync.Mutex
	all []string
	got chan bool // a value for each call
}

func newCalls() *calls { return &calls{got: make(chan bool, 1000)} }

func (c *calls) note(name string, p Pressure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprint(name, " ", p.Level, " ", p.Wanted/mib))
	c.got <- true
}

// want waits for len(want) calls and compares them all.
func (c *calls) want(t *testing.T, want ...string) {
	t.Helper()
	for range want {
		<-c.got
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.all, want) {
		t.Errorf("called %q, want %q", c.all, want)
	}
	c.all = nil
}

// hold sets the off-heap memory and lets the rounds see it.
func (f *fake) hold(b *Budget, bytes int64) {
	f.change(func() { f.offHeap = bytes })
	b.tick()
}

// idle waits until a number of rounds have begun.
func (b *Budget) idle(rounds uint64) {
	for b.Stats().Rounds < rounds {
		time.Sleep(time.Millisecond)
	}
}

// A limit of 1100 MiB with 1000 available: Go's floor is 10 MiB, so soft begins at 840 and hard
// at 990 MiB of off-heap memory.
func pressed(t *testing.T, f *fake, o Options) *Budget {
	f.physical = 64 * gib
	o.Limit, o.Headroom = 1100*mib, 100*mib
	return mustStart(t, o, f)
}

func TestCallbacksAreNotCalledIfTrimIsEnough(t *testing.T) {
	f, c := newFake(), newCalls()
	f.onTrim = func() { f.offHeap = 100 * mib }
	b := pressed(t, f, Options{})
	b.OnPressure(0, func(_ context.Context, p Pressure) { c.note("f", p) })
	f.hold(b, 900*mib)
	b.idle(2) // the rise, and that it is Calm again
	f.change(func() { f.onTrim = nil })
	f.hold(b, 900*mib)
	c.want(t, "f soft 91")
	f.hold(b, 10*mib)
	c.want(t, "f calm 0")
}

// Pages of freed blocks count until their heap is trimmed.
func TestWhatCallbacksFreeIsTrimmedBeforeTheNext(t *testing.T) {
	f, c := newFake(), newCalls()
	freed := int64(0)
	f.onTrim = func() { f.offHeap -= freed; freed = 0 }
	b := pressed(t, f, Options{})
	b.OnPressure(1, func(_ context.Context, p Pressure) { c.note("first", p); f.change(func() { freed = 20 * mib }) })
	b.OnPressure(2, func(_ context.Context, p Pressure) { c.note("second", p) })
	f.hold(b, 1020*mib)
	c.want(t, "first hard 211", "second hard 191")
}

func TestCallbacksAreCalledAgainEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that a round is over before the clock goes on
		f, c := newFake(), newCalls()
		b := pressed(t, f, Options{})
		remove := b.OnPressure(0, func(_ context.Context, p Pressure) { c.note("f", p) })
		f.hold(b, 900*mib)
		c.wait(t, "f soft 91")
		for range 10 {
			f.hold(b, 910*mib) // less than a second later
		}
		c.wait(t)
		f.change(func() { f.clock = f.clock.Add(roundTime) })
		f.hold(b, 920*mib)
		c.wait(t, "f soft 111")
		f.hold(b, 1000*mib) // a rise does not wait
		c.wait(t, "f hard 191")
		remove()
		remove()
		f.hold(b, 10*mib)
		c.wait(t)
	})
}

// Go's heap grows by more in a second than is left. So callbacks that free are called again at
// once while the process is at its limit, and those that do not ever more rarely.
func TestCallbacksAreCalledAgainAtOnceInDanger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(), newCalls()
		b, root := rooted(t, f)
		frees := int64(0)
		b.OnPressure(0, func(_ context.Context, p Pressure) {
			c.note("f", Pressure{Level: p.Level})
			f.change(func() { f.offHeap -= frees })
		})
		mustTake(t, root, 500*mib)
		wantFull(t, take(root, 600*mib), root)
		c.wait(t, "f hard 0")
		f.tick(10)
		c.wait(t) // the account's own limit is no danger
		frees = 150 * mib
		f.change(func() { f.offHeap = 1000 * mib })
		f.tick(1)
		c.wait(t, "f hard 0") // and this is no rise of the level
		for range 3 {
			f.change(func() { f.offHeap = 1000 * mib })
			f.tick(1)
			c.wait(t, "f hard 0")
		}
		frees = 0
		f.change(func() { f.offHeap = 1000 * mib })
		f.tick(1)
		c.wait(t, "f hard 0")
		for pause := 2 * tickTime; pause < roundTime; pause *= 2 {
			f.tick(int(pause/tickTime) - 1)
			c.wait(t)
			f.tick(1)
			c.wait(t, "f hard 0")
		}
		for range 2 {
			f.tick(int(roundTime/tickTime) - 1)
			c.wait(t)
			f.tick(1)
			c.wait(t, "f hard 0")
		}
		f.change(func() { f.offHeap = 0 })
		f.tick(1)
		c.wait(t, "f calm 0")
		f.change(func() { f.offHeap = 1000 * mib })
		f.tick(1)
		c.wait(t, "f hard 0")
		f.tick(2)
		c.wait(t, "f hard 0") // the pause is short again
	})
}

// A process between the end and the beginning of Soft is Calm again as soon as its account is: the
// process's own need did not begin the level.
func TestTheLevelEndsWithTheAccounts(t *testing.T) {
	f := figures{limit: 1100 * mib, headroom: 100 * mib, offHeap: 830 * mib, golang: goFigures{outside: 2 * mib}}
	for _, account := range []Level{Soft, Hard} {
		var a alarm
		a.note(f, Calm, pressure.State{Level: account}, time.Time{})
		if a.pressure.Level != account {
			t.Errorf("%v, want the account's %v", a.pressure.Level, account)
		}
		a.note(f, Calm, pressure.State{}, time.Time{})
		if a.pressure.Level != Calm {
			t.Errorf("%v after the account's %v has ended, want calm", a.pressure.Level, account)
		}
	}
}

func TestCallbacksThatPanicOrBlockStopNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // only the one that blocks misses its deadline
		f, c := newFake(), newCalls()
		b := pressed(t, f, Options{})
		release := make(chan bool)
		ended := make(chan error, 1)
		b.OnPressure(1, func(context.Context, Pressure) { panic("oh") })
		b.OnPressure(2, func(ctx context.Context, p Pressure) {
			c.note("blocks", p)
			<-release
			ended <- ctx.Err()
		})
		b.OnPressure(3, func(_ context.Context, p Pressure) { c.note("f", p) })
		f.hold(b, 900*mib)
		c.want(t, "blocks soft 91", "f soft 91")
		f.hold(b, 1000*mib)
		c.want(t, "f hard 191") // without the one that still runs
		if st := b.Stats(); st.Panics != 2 || st.Late != 1 || st.Problem != "a callback panicked: oh" {
			t.Errorf("%+v", st)
		}
		close(release)
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the context's error is %v", err)
		}
	})
}

func TestStopEndsARoundThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		b := pressed(t, f, Options{})
		release := make(chan bool)
		b.OnPressure(0, func(ctx context.Context, _ Pressure) {
			if end, ok := ctx.Deadline(); !ok || time.Until(end) != callTime {
				t.Errorf("the context ends at %v", end)
			}
			<-release
		})
		b.OnPressure(1, func(context.Context, Pressure) { t.Error("called after Stop") })
		f.hold(b, 900*mib)
		synctest.Wait()
		b.Stop()
		close(release)
	})
}

func TestSignalsRaiseTheLevel(t *testing.T) {
	f, c := newFake(), newCalls()
	f.files = tree{machinePressure: "some total=0\n"}
	b := pressed(t, f, Options{})
	b.OnPressure(0, func(_ context.Context, p Pressure) { c.note("f", p) })
	f.change(func() { f.files = tree{machinePressure: "some total=200000\n"} })
	f.tick(1)
	c.want(t, "f soft 31")
	f.change(func() { f.clock = f.clock.Add(pressure.SignalTime) })
	f.tick(1)
	c.want(t, "f calm 0")
}

// A process that is moved hears of the stalls of its cgroup.
func TestSignalsAreOfTheCgroupThatTheProcessIsIn(t *testing.T) {
	const none, long, longer = "some total=0\n", "some total=5000000\n", "some total=6000000\n"
	const own, other = app + "memory.pressure", pod + "other/memory.pressure"
	here := v2.With(app+"memory.max", "max", pod+"memory.max", "max", own, none, other, long, machinePressure, longer)
	there := here.With(cgroups.Groups, "0::/pod/other\n")
	f := newFake()
	f.files = here
	b := pressed(t, f, Options{})
	for i, files := range []tree{ // stalls of another file are no signal
		here, here.With(other, longer),
		there, there.With(own, long),
		there.With(other, cgroups.Unreadable), there.With(other, "?"),
		there.With(cgroups.Groups, cgroups.Unreadable), there.With(cgroups.Groups, "0::/../x\n"),
		there.With(other, ""), here.With(own, ""),
		here, here.With(own, none),
	} {
		f.change(func() { f.files = files })
		for range ticksPerSearch + 1 {
			f.pass(restTime)
			if level := b.Stats().Pressure.Level; level != Calm {
				t.Errorf("%d: %v", i, level)
			}
		}
	}
	f.change(func() { f.files = here.With(own, long) })
	f.pass(restTime)
	if level := b.Stats().Pressure.Level; level != Soft {
		t.Errorf("%v after a stall", level)
	}
}
