// Log: the lines that a Logger gets, and Loggers that block, panic or call back.

package budget

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lines is a slog.Handler that keeps the lines about the level, short. The zero value is ready.
type lines struct {
	mu     sync.Mutex
	all    []string
	budget Stats  // of the last one
	begun  func() // each line calls it, unless nil
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String()
	l.mu.Lock()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "budget" {
			l.budget = a.Value.Any().(Stats)
		} else if a.Key == "account" {
			line += " of " + a.Value.Any().(AccountStats).Name
		} else {
			line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
		return true
	})
	l.all = append(l.all, line)
	begun := l.begun
	l.mu.Unlock()
	if begun != nil {
		begun()
	}
	return nil
}

// want waits until all goroutines of the bubble wait, and compares the lines since the last want.
func (l *lines) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.all, want) {
		t.Errorf("lines %q, want %q", l.all, want)
	}
	l.all = nil
}

// logged is pressed with a Logger, in a bubble, after the line about the start.
func logged(t *testing.T, test func(t *testing.T, f *fake, b *Budget, l *lines)) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFake(), &lines{}
		b := pressed(t, f, Options{Logger: slog.New(l)})
		l.want(t, "INFO")
		test(t, f, b, l)
	})
}

const (
	lineCalm = "INFO pressure=calm"
	lineSoft = "WARN pressure=soft"
	lineHard = "WARN pressure=hard"
)

func TestLevelsAreLogged(t *testing.T) {
	logged(t, func(t *testing.T, f *fake, b *Budget, l *lines) {
		later := func(d time.Duration) { f.change(func() { f.clock = f.clock.Add(d) }) }
		f.hold(b, 900*mib)
		l.want(t, lineSoft)
		if l.budget.OffHeap != 900*mib || l.budget.Pressure != (Pressure{Soft, 95682560}) {
			t.Errorf("%s; %+v", l.budget, l.budget.Pressure)
		}
		f.hold(b, 910*mib)
		l.want(t)
		f.hold(b, 1000*mib)
		l.want(t, lineHard)
		later(time.Hour)
		f.hold(b, 0)
		l.want(t)
		later(fallTime - 1)
		f.hold(b, 0)
		l.want(t)
		later(1)
		f.hold(b, 0)
		l.want(t, lineCalm)
		f.hold(b, 1000*mib)
		l.want(t, lineHard)
		f.hold(b, 900*mib)
		later(roundTime) // the next round
		f.hold(b, 900*mib)
		l.want(t)
		later(fallTime)
		f.hold(b, 900*mib)
		l.want(t, lineSoft)
		f.hold(b, 0)
		synctest.Wait() // the round
		later(fallTime)
		b.Stop()
		b.tick()
		l.want(t)
	})
}

// The pressure of a line is the one that it is about, whatever that is when it is written.
func TestLineHasOnePressure(t *testing.T) {
	logged(t, func(t *testing.T, f *fake, b *Budget, l *lines) {
		b.writeLevel(Pressure{Hard, 7})
		l.want(t, lineHard)
		if l.budget.Pressure != (Pressure{Hard, 7}) {
			t.Errorf("%s; %+v", l.budget, l.budget.Pressure)
		}
	})
}

func TestLevelsThatTrimEndsAreNotLogged(t *testing.T) {
	logged(t, func(t *testing.T, f *fake, b *Budget, l *lines) {
		f.change(func() { f.onTrim = func() { f.offHeap = 0 } })
		f.hold(b, 1000*mib)
		l.want(t)
	})
}

// What is told while a Logger blocks is one line, if that is another level.
func TestLoggerThatBlocksStopsNothing(t *testing.T) {
	logged(t, func(t *testing.T, f *fake, b *Budget, l *lines) {
		c, release := newCalls(), make(chan bool)
		l.begun = func() { <-release }
		b.OnPressure(0, func(_ context.Context, p Pressure) { c.note("f", p) })
		f.hold(b, 900*mib)
		l.want(t, lineSoft)
		c.wait(t, "f soft 91")
		f.hold(b, 1000*mib)
		c.wait(t, "f hard 191")
		l.want(t)
		release <- true
		l.want(t, lineHard)
		f.hold(b, 0)
		c.wait(t, "f calm 0")
		f.change(func() { f.clock = f.clock.Add(fallTime) })
		b.Stop()
		close(release)
		l.want(t) // the fall would be a line
	})
}

func TestLoggerThatPanicsOrExitsStopsNothing(t *testing.T) {
	logged(t, func(t *testing.T, f *fake, b *Budget, l *lines) {
		l.begun = func() { panic("oh") }
		f.hold(b, 900*mib)
		l.want(t, lineSoft)
		if st := b.Stats(); st.Panics != 1 || st.Problem != "Options.Logger panicked: oh" {
			t.Errorf("%+v", st)
		}
		l.begun = func() { runtime.Goexit() }
		f.hold(b, 1000*mib)
		l.want(t, lineHard)
		f.hold(b, 0)
		synctest.Wait()
		f.change(func() { f.clock = f.clock.Add(fallTime) })
		f.hold(b, 0)
		l.want(t, lineCalm)
	})
}

func TestLoggerMayUseTheBudget(t *testing.T) {
	logged(t, func(t *testing.T, f *fake, b *Budget, l *lines) {
		a := newAccount(t, b.Account(), "a", 0)
		t.Cleanup(b.Account().Close)
		l.begun = func() {
			block, err := a.Alloc(1<<20, 8)
			if err == nil {
				a.Free(block)
			}
			b.tick()
			b.OnPressure(0, func(context.Context, Pressure) {})()
			if st := b.Stats(); st.Pressure.Level == Calm {
				t.Errorf("%+v", st)
			}
			b.Stop()
		}
		f.hold(b, 900*mib)
		l.want(t, lineSoft)
		if Running() != nil {
			t.Error("the budget runs")
		}
	})
}

// The line about the start is the first, however long it takes.
func TestStartIsLoggedBeforeTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := newFake(), &lines{}
		f.offHeap = 1000 * mib
		l.begun = func() {
			l.begun = nil
			Running().tick()
			l.want(t, "INFO") // and no level yet
		}
		b := pressed(t, f, Options{Logger: slog.New(l)})
		l.want(t, lineHard)
		b.Stop()
	})
}

// Accounts log by their own Logger, or by the Logger of the account above.
func TestLevelsOfAccountsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lines{}
		top := NewAccount(nil, &AccountOptions{Name: "top", MaxBytes: 100 << 20, Decay: never, Logger: slog.New(l)})
		defer top.Close()
		a := newAccount(t, top, "a", 50<<20)
		look, freed := a.lines.do, make(chan bool)
		a.lines.do = func() time.Duration { <-freed; return look() }
		a.Free(mustAlloc(t, a, 45<<20))
		close(freed)
		l.want(t) // trimming was enough
		b := mustAlloc(t, a, 45<<20)
		l.want(t, lineSoft+" of top/a")
		c := mustAlloc(t, top, 53<<20)
		l.want(t, lineHard+" of top")
		for range 30 { // it comes and goes
			a.Free(b)
			a.Trim()
			time.Sleep(fallTime - 1)
			b = mustAlloc(t, a, 45<<20)
		}
		time.Sleep(2 * fallTime)
		l.want(t)
		top.Free(c)
		top.Trim()
		time.Sleep(fallTime / 2)
		c = mustAlloc(t, top, 53<<20) // ends this fall, and not the look at it
		l.want(t)
		top.Free(c)
		top.Trim()
		time.Sleep(fallTime - 1)
		l.want(t)
		time.Sleep(time.Nanosecond)
		l.want(t, lineCalm+" of top")
		a.Free(b)
		a.Trim()
		a.Close()
		time.Sleep(2 * fallTime)
		l.want(t)
		l.begun = func() { panic("oh") }
		mustAlloc(t, top, 99<<20)
		l.want(t, lineHard+" of top")
		if st := top.Stats(); st.Panics != 1 || st.Problem != "AccountOptions.Logger panicked: oh" {
			t.Errorf("%+v", st)
		}
	})
}

// Accounts below the process's account log by the budget's Logger. For the process's account the
// budget writes the lines.
func TestLevelsBelowTheRootAreLogged(t *testing.T) {
	logged(t, func(t *testing.T, f *fake, b *Budget, l *lines) {
		root := b.Account()
		defer root.Close()
		a := newAccount(t, root, "a", 10*mib)
		charge(t, a, 9*mib)
		l.want(t, lineSoft+" of process/a")
		payer{a}.Refund(9 * mib)
		root.SetLimits(5*mib, 0)
		charge(t, root, 6*mib)
		l.want(t, lineSoft)
		payer{root}.Refund(6 * mib)
	})
}
