package epoch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/freehold-go/freehold/internal/panics"
)

// Each step ends an epoch, enters a guard or has it leave, on another goroutine. Then the
// epochs up to a number have passed, and the later ones have not.
func TestPassed(t *testing.T) {
	var (
		d      Domain
		guards = map[string]Guard{}
		ended  []*Epoch
	)
	enter := func(name string) func() { return func() { guards[name] = d.Enter() } }
	leave := func(name string) func() {
		return func() {
			var wg sync.WaitGroup
			wg.Go(guards[name].Leave)
			wg.Wait()
		}
	}
	advance := func() { ended = append(ended, d.Advance()) }
	for i, step := range []struct {
		do     func()
		passed int
	}{
		{advance, 1}, // nobody ever was in it
		{enter("first"), 1},
		{advance, 1},
		{enter("second"), 1},
		{advance, 1},
		{advance, 1},         // waits for guards of earlier epochs
		{leave("second"), 1}, // first is still in an earlier epoch
		{enter("third"), 1},
		{leave("first"), 4}, // third is in a later one
		{advance, 4},
		{leave("third"), 5},
	} {
		step.do()
		for number, e := range ended {
			if got, want := e.Passed(), number+1 <= step.passed; got != want {
				t.Errorf("after step %d: epoch %d has passed: %t, want %t", i, number+1, got, want)
			}
		}
	}
}

func TestLeaveTwice(t *testing.T) {
	var d Domain
	g := d.Enter()
	g.Leave()
	panics.Want(t, "freehold: epoch.Guard.Leave: the guard has left already", g.Leave)
	g = d.Enter()
	e := d.Advance()
	if e.Passed() {
		t.Error("the second Leave took another guard away")
	}
	g.Leave()
	if !e.Passed() {
		t.Error("not passed")
	}
}

// The number of past epochs kept is bounded by that of guards held: without guards,
// with one that stays, and with many.
func TestPastEpochsAreDropped(t *testing.T) {
	var d Domain
	for range 1000 {
		g := d.Enter()
		d.Advance()
		g.Leave()
	}
	if n := len(d.past); n > 2 {
		t.Errorf("%d epochs are kept, of which none has guards but the last", n)
	}
	stays := d.Enter()
	for range 1000 {
		g := d.Enter()
		d.Advance()
		g.Leave()
	}
	if n := len(d.past); n > 4 {
		t.Errorf("%d epochs are kept, of which one has guards", n)
	}
	var many []Guard
	for range 100 {
		many = append(many, d.Enter())
		d.Advance()
	}
	for range 1000 {
		d.Advance()
	}
	if n := len(d.past); n < 101 || n > 2*101+2 {
		t.Errorf("%d epochs are kept, of which 101 have guards", n)
	}
	for _, g := range many {
		g.Leave()
	}
	e := d.Advance()
	if e.Passed() {
		t.Error("passed under the guard that stays")
	}
	stays.Leave()
	if !e.Passed() || len(d.past) != 0 {
		t.Errorf("passed is %v with %d epochs kept, and no guard is left", e.Passed(), len(d.past))
	}
}

// The writer destroys an unlinked value only once its epoch has passed, so no reader
// finds a destroyed value.
func TestStress(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	type value struct{ plain, mirror int } // plain memory, so the race detector checks accesses
	var (
		d      Domain
		linked atomic.Pointer[value]
		stop   atomic.Bool
		wg     sync.WaitGroup
	)
	linked.Store(&value{1, ^1})
	for range 3 {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				g := d.Enter()
				v := linked.Load()
				if n%64 == 0 {
					runtime.Gosched()
				}
				if v.plain != ^v.mirror {
					t.Errorf("a reader found %d and %d", v.plain, v.mirror)
					stop.Store(true)
				}
				g.Leave()
			}
		})
	}
	type unlinked struct {
		v *value
		e *Epoch
	}
	var waiting []unlinked
	destroyed := 0
	for i := 0; i < rounds && !stop.Load(); i++ {
		v := linked.Swap(&value{i, ^i})
		waiting = append(waiting, unlinked{v, d.Advance()})
		for len(waiting) > 0 && waiting[0].e.Passed() {
			*waiting[0].v = value{-1, -1}
			waiting = waiting[1:]
			destroyed++
		}
		if i%16 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	for _, u := range waiting {
		if !u.e.Passed() {
			t.Fatal("an epoch has not passed when all readers have ended")
		}
	}
	t.Logf("%d of %d destroyed under way", destroyed, rounds)
}

// FuzzDomain reads its input as a program for one domain, and compares with a
// model that knows the epoch of each guard.
func FuzzDomain(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0, 1, 0, 2, 1})
	f.Add([]byte{0, 2, 0, 2, 0, 2, 1, 1, 1, 3, 2, 2, 2})
	f.Fuzz(func(t *testing.T, prog []byte) {
		type held struct {
			g     Guard
			epoch int
		}
		var (
			d      Domain
			guards []held
			ended  []*Epoch
		)
		for len(prog) >= 2 {
			op, arg := prog[0], int(prog[1])
			prog = prog[2:]
			switch op % 3 {
			case 0:
				guards = append(guards, held{d.Enter(), len(ended)})
			case 1:
				if len(guards) > 0 {
					i := arg % len(guards)
					guards[i].g.Leave()
					guards = append(guards[:i], guards[i+1:]...)
				}
			case 2:
				ended = append(ended, d.Advance())
			}
			oldest := len(ended)
			for _, h := range guards {
				oldest = min(oldest, h.epoch)
			}
			if len(ended) > 0 {
				i := arg % len(ended)
				if got, want := ended[i].Passed(), i < oldest; got != want {
					t.Fatalf("epoch %d of %d, oldest guard in %d: passed is %v", i, len(ended), oldest, got)
				}
			}
		}
	})
}

func BenchmarkEnterLeave(b *testing.B) {
	var d Domain
	for range b.N {
		d.Enter().Leave()
	}
}

// BenchmarkEnterLeaveEach runs on GOMAXPROCS goroutines. The figure is the time of one
// goroutine, so it is constant if Enter scales perfectly.
func BenchmarkEnterLeaveEach(b *testing.B) {
	var (
		d  Domain
		wg sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for range b.N {
				d.Enter().Leave()
			}
		})
	}
	wg.Wait()
}

// BenchmarkTwoAdds is the lower bound: two atomic additions on an unshared word.
func BenchmarkTwoAdds(b *testing.B) {
	var s stripe
	for range b.N {
		s.guards.Add(1)
		s.guards.Add(-1)
	}
}

func BenchmarkAdvance(b *testing.B) {
	var d Domain
	b.ReportAllocs()
	for range b.N {
		d.Enter().Leave()
		d.Advance()
	}
}

// TestLateReaderJoinsNoEndedEpoch: between a reader's two loads of the current epoch,
// the epoch may end and pass. The reader must notice, and leave no guard in it.
func TestLateReaderJoinsNoEndedEpoch(t *testing.T) {
	var d Domain
	d.Enter().Leave()
	r := d.current.Load() // A1
	e := d.Advance()      // B1
	if !e.Passed() {      // B2
		t.Fatal("an epoch has not passed, though it has no guards")
	}
	if _, ok := d.join(r); ok { // A2, A3
		t.Error("a reader is in an epoch that has passed")
	}
	for i := range r {
		if n := r[i].guards.Load(); n != 0 {
			t.Errorf("a reader that went elsewhere has left %d guards", n)
		}
	}
	g, ok := d.join(d.current.Load())
	if !ok || d.Advance().Passed() {
		t.Errorf("a reader in the current epoch: joined %t, and is not waited for", ok)
	}
	g.Leave()
}

// TestFirstReadersAreInOneEpoch: two readers that find no epoch agree on one.
func TestFirstReadersAreInOneEpoch(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	const rounds = 10_000
	var domains [rounds]Domain
	var reached [2]atomic.Int64
	var guards [2][rounds]Guard
	var wg sync.WaitGroup
	for me := range 2 {
		wg.Go(func() {
			for i := range rounds {
				reached[me].Store(int64(i))
				for n := 0; reached[1-me].Load() < int64(i); n++ {
					if n > 1000 {
						runtime.Gosched()
					}
				}
				guards[me][i] = domains[i].Enter()
			}
			reached[me].Store(rounds)
		})
	}
	wg.Wait()
	for i := range rounds {
		guards[0][i].Leave()
		e := domains[i].Advance()
		if e.Passed() {
			t.Fatalf("round %d: an epoch passed under a guard", i)
		}
		guards[1][i].Leave()
		if !e.Passed() {
			t.Fatalf("round %d: not passed, and no guard is left", i)
		}
	}
}

// TestManyEndEpochs: several goroutines end epochs concurrently and check whether they
// have passed.
func TestManyEndEpochs(t *testing.T) {
	const rounds = 20_000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	var d Domain
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range rounds {
				g := d.Enter()
				e := d.Advance()
				for range 20 {
					if e.Passed() {
						t.Error("an epoch passed under a guard")
						return
					}
				}
				g.Leave()
				if i%8 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	if e := d.Advance(); !e.Passed() || len(d.past) != 0 || d.ended != uint64(4*rounds+1) {
		t.Errorf("passed is %t, %d epochs are kept, %d have ended", e.Passed(), len(d.past), d.ended)
	}
}

// TestPassedEpochsAreCollected: the next collection frees their counters.
func TestPassedEpochsAreCollected(t *testing.T) {
	var d Domain
	var counters []weak.Pointer[readers]
	var guards []Guard
	for range 5 {
		guards = append(guards, d.Enter())
		counters = append(counters, weak.Make(d.current.Load()))
		d.Advance()
	}
	for _, g := range guards {
		g.Leave()
	}
	clear(guards)
	if !d.Advance().Passed() {
		t.Error("an epoch has not passed, though all its guards have left")
	}
	runtime.GC()
	for i, w := range counters {
		if w.Value() != nil {
			t.Errorf("the counters of epoch %d are kept", i)
		}
	}
	runtime.KeepAlive(&d)
}

func TestLeaveOfTheZeroGuardPanics(t *testing.T) {
	if panics.Of(Guard{}.Leave) == "" {
		t.Error("no panic")
	}
}
