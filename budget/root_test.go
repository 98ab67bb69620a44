// The account of the process: its limit follows the budget's, and its pressure is the budget's.

package budget

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold/budget/internal/limits"
)

// rooted returns a budget with 1000 MiB available, and its account. Go needs 10 MiB of them. The
// memory of the account is a part of off-heap memory; f.offHeap is the memory of other heaps.
func rooted(t *testing.T, f *fake) (*Budget, *Account) {
	f.physical = 64 * gib
	s := f.system()
	var root atomic.Pointer[Account]
	others := s.offHeap
	s.offHeap = func() int64 {
		a := root.Load()
		if a == nil {
			return others()
		}
		return others() + a.node.Charged()
	}
	b, err := start(Options{Limit: 1100 * mib, Headroom: 100 * mib}, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	a := b.Account()
	t.Cleanup(a.Close)
	root.Store(a)
	return b, a
}

// charge charges an account as its heap does.
func charge(t *testing.T, a *Account, bytes int) {
	t.Helper()
	if err := (payer{a}).Charge(bytes); err != nil {
		t.Error(err)
	}
}

func wantHard(t *testing.T, a *Account, want int64) {
	t.Helper()
	if st := a.Stats(); st.MaxBytes != want {
		t.Errorf("limit is %s, want %s: %+v", formatSize(st.MaxBytes), formatSize(want), st)
	}
}

func TestRootHasWhatIsLeft(t *testing.T) {
	f := newFake()
	b, root := rooted(t, f)
	if b.Account() != root || root.Name() != "process" {
		t.Errorf("another account: %v", b.Account())
	}
	wantHard(t, root, 990*mib)
	a := newAccount(t, root, "a", 0)
	charge(t, a, 200*mib)
	b.tick()
	wantHard(t, root, 990*mib) // what it has is its own
	if st := a.Stats(); st.Room != 790*mib {
		t.Errorf("%+v", st)
	}
	for _, tt := range []struct {
		what   string
		change func()
		want   int64 // MiB
	}{
		{"other heaps", func() { f.offHeap = 90 * mib }, 900},
		{"Go's live objects", func() { f.golang.live = 100 * mib }, 758}, // 1.5 times as much
		{"Go's structures", func() { f.golang.outside = 12 * mib }, 748},
		{"what Go holds above its floor", func() { f.golang.held = 300 * mib }, 748},
		{"all that is there", func() { f.offHeap = 2 * gib }, 0},
		{"nothing", func() { f.offHeap = 0; f.golang.live, f.golang.outside = 0, 2*mib }, 990},
	} {
		f.change(tt.change)
		b.tick()
		if want := max(tt.want*mib, 1); root.Stats().MaxBytes/mib*mib != want/mib*mib {
			t.Errorf("%s: limit is %s, want %s", tt.what, formatSize(root.Stats().MaxBytes), formatSize(want))
		}
	}
	payer{a}.Refund(200 * mib)
}

func TestLimitsOfTheRootHoldBesideTheBudgets(t *testing.T) {
	f := newFake()
	b, root := rooted(t, f)
	root.SetLimits(0, 500*mib)
	wantHard(t, root, 500*mib)
	b.tick()
	wantHard(t, root, 500*mib)
	f.change(func() { f.offHeap = 600 * mib })
	b.tick()
	wantHard(t, root, 390*mib)
	root.SetLimits(0, 2000*mib)
	wantHard(t, root, 390*mib)
	root.SetLimits(0, 100*mib)
	wantHard(t, root, 100*mib)
	b.Stop()
	wantHard(t, root, 100*mib)
	root.SetLimits(0, 0)
	wantHard(t, root, 0)
}

// A request is refused by the present figures, not by the last tick's.
func TestRootLooksBeforeItRefuses(t *testing.T) {
	f := newFake()
	f.offHeap = 985 * mib
	b, root := rooted(t, f)
	b.tick()
	wantHard(t, root, 5*mib)
	f.change(func() { f.offHeap = 0 })
	mustAlloc(t, root, 8<<20)
	if b.Stats().Reclaims != 0 || root.Stats().Refusals != 0 {
		t.Errorf("%+v", b.Stats())
	}
}

// What a trim of other heaps or a collection can serve is served, if the limit is the budget's.
func TestRootIsRelieved(t *testing.T) {
	for _, by := range []string{"trim", "collection"} {
		f := newFake()
		b, root := rooted(t, f)
		free := func() { f.offHeap, f.golang.live = 0, 4*mib }
		if by == "trim" {
			f.onTrim = free
		} else {
			f.onReclaim = free
		}
		f.change(func() { f.offHeap, f.golang.live = 500*mib, 322*mib }) // 485 by live objects
		b.tick()
		mustTake(t, root, 700*mib)
		give(root, 700*mib)
		if collected := b.Stats().Reclaims > 0; collected != (by == "collection") {
			t.Errorf("%s: collected: %t", by, collected)
		}
		root.SetLimits(0, 600*mib)
		f.change(func() { f.clock = f.clock.Add(roundTime) })
		before := b.Stats().Reclaims
		wantFull(t, take(root, 700*mib), root)
		if b.Stats().Reclaims != before {
			t.Error("collected for a limit that is not the budget's")
		}
		b.Stop()
	}
}

func TestRequestsWaitForOneCollection(t *testing.T) {
	f := newFake()
	f.reclaimed = make(chan bool)
	b, root := rooted(t, f)
	f.change(func() { f.golang.live = 600 * mib })
	b.tick()
	wantHard(t, root, 98*mib)
	errs := make(chan error)
	for range 4 {
		go func() { errs <- take(root, 100*mib) }()
	}
	for root.Stats().Refusals < 4 || b.Stats().Reclaims == 0 {
		time.Sleep(time.Millisecond)
	}
	f.change(func() { f.golang.live = 4 * mib })
	f.reclaimed <- true
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if st := b.Stats(); st.Reclaims != 1 {
		t.Errorf("%d collections", st.Reclaims)
	}
	close(f.reclaimed)
	give(root, 400*mib)
}

// What is done before a refusal goes on until it is enough, and takes a part of the time at most.
// Others wait for it, and the budget's ticks do not.
func TestRelief(t *testing.T) {
	f := newFake()
	b, root := rooted(t, f)
	var done []string
	unguarded := func() {
		if b.relief.mu.TryLock() {
			b.relief.mu.Unlock()
			t.Error("others do not wait")
		}
		if b.mu.TryLock() {
			b.mu.Unlock()
		} else {
			t.Error("ticks wait")
		}
	}
	takes := time.Duration(0)
	f.onTrim = func() { unguarded(); done = append(done, "trim"); f.offHeap -= 100 * mib }
	f.onReclaim = func() { done = append(done, "collection"); f.offHeap -= 100 * mib; f.clock = f.clock.Add(takes) }
	for _, tt := range []struct {
		what  string
		pause time.Duration // since the last one
		hard  int64         // that is enough, in MiB
		takes time.Duration
		want  []string
	}{
		{"enough is there", 0, 690, 0, nil},
		{"a trim is enough", 0, 790, 0, []string{"trim"}},
		{"so soon", roundTime - 1, 790, 0, nil},
		{"a collection is enough", 1, 890, 0, []string{"trim", "collection"}},
		{"it takes a second", roundTime, 990, time.Second, []string{"trim", "collection"}},
		{"a tenth of the time is over", searchShare*time.Second - 1, 990, 0, nil},
		{"after that", 1, 990, 0, []string{"trim", "collection"}},
	} {
		done, takes = nil, tt.takes
		f.change(func() { f.offHeap = 300 * mib; f.clock = f.clock.Add(tt.pause) })
		b.tick()
		wantHard(t, root, 690*mib)
		b.relieve(func() bool { return root.Stats().MaxBytes >= tt.hard*mib })
		if !slices.Equal(done, tt.want) {
			t.Errorf("%s: %q, want %q", tt.what, done, tt.want)
		}
	}
}

// A charge waits for no lock of the budget's, however often it crosses: a tick holds that, and
// waits for the ledger's.
func TestCrossingsDoNotWaitForATick(t *testing.T) {
	f := newFake()
	b, root := rooted(t, f)
	root.SetLimits(100, 200)
	b.mu.Lock()
	for range 4 {
		charge(t, root, 200)
		payer{root}.Refund(200)
	}
	b.mu.Unlock()
}

// The tick that leaves the account short of memory knows it.
func TestRootIsShortByTheTick(t *testing.T) {
	f := newFake()
	b, root := rooted(t, f)
	charge(t, root, 500*mib)
	f.hold(b, 480*mib) // 990 of 1000: soft for the process, and the account has 10 left
	if p := b.currentPressure(); p.Level != Hard {
		t.Errorf("%+v", p)
	}
	payer{root}.Refund(500 * mib)
}

func TestCrossingOfTheRootIsTheBudgets(t *testing.T) {
	f, c := newFake(), newCalls()
	b, root := rooted(t, f)
	root.SetLimits(100*mib, 200*mib)
	a := newAccount(t, root, "a", 0)
	root.OnPressure(2, func(_ context.Context, p Pressure) { c.note("third", p) })
	remove := b.OnPressure(1, func(_ context.Context, p Pressure) { c.note("second", p) })
	root.OnPressure(0, func(_ context.Context, p Pressure) { c.note("first", p) })
	charge(t, a, 110*mib) // no tick but the crossing's
	c.want(t, "first soft 13", "second soft 13", "third soft 13")
	remove()
	charge(t, root, 60*mib) // no new level
	charge(t, a, 28*mib)    // 198 of 200, of which 100 are soft
	c.want(t, "first hard 101", "third hard 101")
	if st := b.Stats(); st.Pressure.Level != Hard || st.Rounds < 2 || st.Account.Pressure.Level != Hard || st.Account.Rounds != 0 {
		t.Errorf("%+v", st)
	}
	payer{a}.Refund(138 * mib)
	c.want(t, "first calm 0", "third calm 0")
	payer{root}.Refund(60 * mib)
}

// The pressure is the higher one of the process's and its account's.
func TestPressureIsTheHigherOne(t *testing.T) {
	f, c := newFake(), newCalls()
	b, root := rooted(t, f)
	b.OnPressure(0, func(_ context.Context, p Pressure) { c.note("f", p) })
	f.hold(b, 880*mib)
	c.want(t, "f soft 71")
	charge(t, root, 107*mib) // of 110
	c.want(t, "f hard 178")
	if p := root.Stats().Pressure; p.Level != Hard || p.Wanted >= 100*mib {
		t.Errorf("%+v", p)
	}
	payer{root}.Refund(107 * mib)
	f.hold(b, 100*mib)
	c.want(t, "f calm 0")
}

func TestAccountsBelowTheRootHaveTheirOwnCallbacks(t *testing.T) {
	f, c, below := newFake(), newCalls(), newCalls()
	b, root := rooted(t, f)
	a := newAccount(t, root, "a", 100*mib)
	notes(root, c, "process")
	notes(a, below, "a")
	charge(t, a, 90*mib)
	below.want(t, "a soft 7")
	b.tick()
	if st := b.Stats(); st.Pressure != (Pressure{}) || st.Rounds != 0 {
		t.Errorf("%+v", st)
	}
	f.hold(b, 885*mib) // and with it the account's
	c.want(t, "process soft 166")
	below.want(t)
	payer{a}.Refund(90 * mib)
	below.want(t, "a calm 0")
}

func TestRefusalOfTheRootIsTold(t *testing.T) {
	f, c := newFake(), newCalls()
	b, root := rooted(t, f)
	a := newAccount(t, root, "a", 0)
	spare := make(chan int64, 1)
	root.OnPressure(0, func(_ context.Context, p Pressure) {
		c.note("frees", p)
		if p.Level > Calm {
			give(a, <-spare)
		}
	})
	b.OnPressure(1, func(_ context.Context, p Pressure) { c.note("f", p) })
	mustTake(t, a, 500*mib)
	wantFull(t, take(a, 600*mib), root)
	spare <- 500 * mib // now, or the request, which waits for a collection, would have had it
	c.want(t, "frees hard 626", "frees calm 0", "f calm 0")
	mustTake(t, a, 600*mib)
	spare <- 500 * mib
	wantFull(t, take(a, 900*mib), root)
	c.want(t, "frees hard 926", "f hard 926") // which is not enough
	f.change(func() { f.clock = f.clock.Add(limits.RefusedTime) })
	b.tick()
	c.want(t, "frees calm 0", "f calm 0")
	give(a, 100*mib)
}

func TestRootIsClosedBeforeStop(t *testing.T) {
	f := newFake()
	b, root := rooted(t, f)
	mustAlloc(t, newAccount(t, root, "a", 0), 1<<20)
	root.Close()
	b.tick()
	f.tick(2)
	if st := b.Stats(); !st.Account.Closed || st.Pressure.Level != Calm || b.Account() != root {
		t.Errorf("%+v", st)
	}
	closed := ` account "process" is closed`
	wantPanic(t, "freehold: Account.OnPressure:"+closed, func() { root.OnPressure(0, nil) })
	wantPanic(t, "freehold: budget.NewAccount:"+closed, func() { NewAccount(b.Account(), nil) })
	b.Stop()
	root.Close()
}

func TestRootIsClosedAfterStop(t *testing.T) {
	f, c := newFake(), newCalls()
	b, root := rooted(t, f)
	notes(root, c, "f")
	f.change(func() { f.offHeap = 2 * gib })
	b.tick()
	c.want(t, "f hard 1239")
	wantHard(t, root, 1)
	b.Stop()
	b.rounds.rest() // the one that has called f trims once more
	wantHard(t, root, 0)
	b.tick()
	a := newAccount(t, root, "a", 0)
	mustAlloc(t, a, 8<<20)
	wantHard(t, root, 0)
	notes(root, c, "g")
	root.SetLimits(1, 10<<20)
	trims := locked(f, func() int { return f.trims })
	wantFull(t, take(root, 5<<20), root)
	if locked(f, func() int { return f.trims }) != trims {
		t.Error("a budget that was stopped makes room")
	}
	again, other := rooted(t, newFake())
	if other == root || again.Account() != other {
		t.Errorf("%v is the old budget's", other)
	}
	root.Close()
	if st := a.Stats(); !root.Stats().Closed || !st.Closed || st.LiveBytes != 8<<20 || other.Stats().Closed {
		t.Errorf("%+v", st)
	}
	c.want(t)
}

func TestRootIsMadeAfterStop(t *testing.T) {
	b := mustStart(t, Options{Limit: 1000 * mib}, newFake())
	b.Stop()
	root := b.Account()
	wantHard(t, root, 0)
	mustAlloc(t, root, 1<<20)
	root.Close()
}

func TestRootInTheStats(t *testing.T) {
	f := newFake()
	f.physical = 64 * gib
	b := mustStart(t, Options{Limit: 1100 * mib, Headroom: 100 * mib}, f)
	if s := b.String(); strings.Contains(s, "account") || b.Stats().Account != (AccountStats{}) {
		t.Error(s)
	}
	root := b.Account()
	defer root.Close()
	mustTake(t, root, 5*mib)
	defer give(root, 5*mib)
	if s, want := b.String(), "; account \"process\": 5MiB used, 5MiB of it by the accounts below, 0B live in 0 blocks of its own, soft limit "; !strings.Contains(s, want) {
		t.Errorf("%s, want %s", s, want)
	}
}

// Goroutines allocate below the root while its limit changes, for the figures and by the user,
// until the budget is stopped.
func TestRootTogether(t *testing.T) {
	f := newFake()
	b, root := rooted(t, f)
	var work sync.WaitGroup
	for g := range 4 {
		a := newAccount(t, root, fmt.Sprint("a", g), 0)
		work.Go(func() {
			for i := range 200 {
				p, err := a.AllocOrEvict(1+i*1000, 8, func(int) int { return 0 })
				if err == nil {
					a.Free(p)
				}
				if n := int64(i) * mib; take(a, n) == nil {
					give(a, n)
				}
			}
		})
	}
	work.Go(func() {
		for i := range int64(200) {
			f.change(func() { f.offHeap = i % 5 * 220 * mib; f.clock = f.clock.Add(roundTime / 10) })
			b.tick()
			root.SetLimits(i%3*mib, i%7*100*mib)
			b.Stats()
		}
		b.Stop()
	})
	remove := root.OnPressure(0, func(context.Context, Pressure) { root.Trim() })
	work.Wait()
	remove()
	root.SetLimits(0, 0)
	root.Trim()
	if st := root.Stats(); st.MaxBytes != 0 || st.Live != 0 || st.Room != math.MaxInt64 {
		t.Errorf("%+v", st)
	}
	if sum := b.charged(); sum != root.Stats().Used {
		t.Errorf("%d bytes are charged, and %d used", sum, root.Stats().Used)
	}
}
