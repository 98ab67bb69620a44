package epoch

import (
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
	"weak"

	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/pintest"
	"github.com/freehold-go/freehold/internal/vm"
)

func TestMain(m *testing.M) {
	preparing.Do(prepare) // so that guards are in slots from the first on
	os.Exit(m.Run())
}

// eachWay runs a test with guards in slots, by the leaf and by pins, unless the build has none; and
// with guards in counters.
func eachWay(t *testing.T, test func(t *testing.T)) {
	ways := map[string]functions{"counter": inCounters}
	if slotted {
		ways["leaf"], ways["pin"] = fast, pinned
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			defer enterBy(way)()
			test(t)
		})
	}
}

var inCounters = functions{func(d *Domain, _, _, _, _ uintptr) Guard { return d.count() }}

// enterBy makes Enter another until restore is called.
func enterBy(way functions) (restore func()) {
	before := fast
	fast = way
	return func() { fast = before }
}

// withSlots returns a guard in a slot of a new Domain, or skips the test where there are no slots.
func withSlots(t *testing.T) (*Domain, Guard) {
	d := new(Domain)
	g := d.Enter()
	if g.epoch == inCounter {
		t.Skip("guards are in counters here")
	}
	return d, g
}

func TestLeafTakesNoPin(t *testing.T) { pintest.LeavesTakeNoPins(t, fast, pinned) }

// Each step ends an epoch, enters a guard or has it leave, on another goroutine. Then the
// epochs up to a number have passed, and the later ones have not.
func TestPassed(t *testing.T) { eachWay(t, testPassed) }

func testPassed(t *testing.T) {
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

func TestLeaveTwice(t *testing.T) { eachWay(t, testLeaveTwice) }

func testLeaveTwice(t *testing.T) {
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

// TestLeaveTwiceInAnotherEpoch: a second Leave is detected if the guard that now has the slot is of
// another epoch.
func TestLeaveTwiceInAnotherEpoch(t *testing.T) {
	_, g := withSlots(t)
	other := g.epoch + 1
	g.at.Store(other)
	panics.Want(t, "freehold: epoch.Guard.Leave: the guard has left already", g.Leave)
	if g.at.Load() != other {
		t.Error("the second Leave moved another guard")
	}
}

// No more past epochs are kept than there are guards in counters: without guards, with one that
// stays, and with many.
func TestPastEpochsAreDropped(t *testing.T) {
	defer enterBy(inCounters)()
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
func TestStress(t *testing.T) { eachWay(t, testStress) }

func testStress(t *testing.T) {
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

// BenchmarkTwoAdds is what counters cost at least: two atomic additions on an unshared word.
func BenchmarkTwoAdds(b *testing.B) {
	var word atomic.Int64
	for range b.N {
		word.Add(1)
		word.Add(-1)
	}
}

// TestLateReaderJoinsNoEndedEpoch: between a reader's two loads of the current epoch,
// the epoch may end and pass. The reader must notice, and leave no guard in it.
func TestLateReaderJoinsNoEndedEpoch(t *testing.T) {
	t.Run("slot", func(t *testing.T) {
		d, g := withSlots(t)
		ended := d.ended.Load() // A1
		g.Leave()
		testLateReader(t, d, func() (Guard, bool) { return d.fill(g.at, ended) })
	})
	t.Run("counter", func(t *testing.T) {
		var d Domain
		d.count().Leave()
		c := d.counters.Load() // A1
		testLateReader(t, &d, func() (Guard, bool) { return d.countIn(c) })
	})
}

func testLateReader(t *testing.T, d *Domain, late func() (Guard, bool)) {
	e := d.Advance() // B1
	if !e.Passed() { // B2, B3
		t.Error("an epoch has not passed, though it has no guards")
	}
	if g, ok := late(); ok { // A2, A3
		t.Error("a reader is in an epoch that has passed")
		g.Leave()
	}
	if !d.Advance().Passed() {
		t.Error("a reader that went elsewhere has left a guard")
	}
	g := d.Enter()
	if d.Advance().Passed() {
		t.Error("a reader in the current epoch is not waited for")
	}
	g.Leave()
}

// TestLateReaderDoesNotUndoPassed: the slot of a late reader holds an epoch that has passed, for a
// moment.
func TestLateReaderDoesNotUndoPassed(t *testing.T) {
	d, g := withSlots(t)
	g.Leave()
	e := d.Advance()
	if !e.Passed() {
		t.Fatal("not passed")
	}
	g.at.Store(g.epoch) // A2
	next := d.Advance()
	if next.Passed() || !e.Passed() {
		t.Error("the next epoch has passed, or that before has not any more")
	}
	g.at.Store(0)
	if !next.Passed() {
		t.Error("not passed without the late reader")
	}
}

// TestFenceComesBetween: Passed sees a store that the processor delays until the fence, since the
// fence comes after the end of the epoch and before the search for guards.
func TestFenceComesBetween(t *testing.T) {
	d, g := withSlots(t)
	if !needsFence {
		t.Skip("stores are not held back here")
	}
	g.at.Store(0)
	fences := 0
	defer vm.SetFault(func(op vm.Op) error {
		if op == vm.OpFence {
			fences++
			if d.ended.Load() != g.epoch {
				t.Error("the fence comes before the end")
			}
			g.at.Store(g.epoch)
		}
		return nil
	})()
	e := d.Advance()
	for range 3 {
		if e.Passed() {
			t.Fatal("an epoch passed under a guard")
		}
	}
	g.Leave()
	if !e.Passed() || fences != 1 {
		t.Errorf("passed is %t, after %d fences", e.Passed(), fences)
	}
}

// TestFenceThatFailsStopsTheWorld: where the system has refused a fence after it had prepared it.
func TestFenceThatFailsStopsTheWorld(t *testing.T) {
	d, g := withSlots(t)
	if !needsFence {
		t.Skip("no fences are needed here")
	}
	stops := func() (n uint64) {
		s := []metrics.Sample{{Name: "/sched/pauses/total/other:seconds"}}
		metrics.Read(s)
		for _, c := range s[0].Value.Float64Histogram().Counts {
			n += c
		}
		return n
	}
	defer vm.SetFault(func(op vm.Op) error { return vm.ErrUnsupported })()
	before := stops()
	e := d.Advance()
	if e.Passed() || stops() == before {
		t.Errorf("passed is %t, and the world stopped %d times", e.Passed(), stops()-before)
	}
	g.Leave()
	if !e.Passed() {
		t.Error("not passed")
	}
}

// TestNoFencesNoSlots: guards are in counters until fences are prepared.
func TestNoFencesNoSlots(t *testing.T) {
	if !needsFence {
		t.Skip("no fences are needed here")
	}
	defer prepare()
	defer vm.SetFault(func(op vm.Op) error { return vm.ErrUnsupported })()
	prepare()
	var d Domain
	g := d.Enter()
	if g.epoch != inCounter {
		t.Error("a guard is in a slot, and there are no fences")
	}
	if d.Advance().Passed() {
		t.Error("an epoch passed under a guard")
	}
	g.Leave()
}

// TestFirstReadersShareSlots: two readers find no slots, and one enters before the other adds them.
func TestFirstReadersShareSlots(t *testing.T) {
	d, g := withSlots(t)
	d.addSlots()
	if d.Advance().Passed() {
		t.Error("an epoch passed under a guard")
	}
	g.Leave()
}

// TestFullLines: if the processor has no free slot, guards go to counters until others have left.
func TestFullLines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	d, g := withSlots(t)
	guards := []Guard{g}
	for range 2 * len(line{}) {
		guards = append(guards, d.Enter())
	}
	for i, g := range guards {
		if full := i >= len(line{}); (g.epoch == inCounter) != full {
			t.Errorf("guard %d is in a counter: %t", i, !full)
		}
	}
	guards[3].Leave()
	if g := d.Enter(); g != guards[3] {
		t.Error("a slot is free, and is not filled")
	}
	e := d.Advance()
	for i, g := range guards {
		if e.Passed() {
			t.Fatalf("passed with %d guards", len(guards)-i)
		}
		g.Leave()
	}
	if !e.Passed() {
		t.Error("not passed")
	}
}

// TestLateProcessor: one that came after the start has no slots, and its guards are in counters.
func TestLateProcessor(t *testing.T) {
	d, g := withSlots(t)
	g.Leave()
	defer func(before int) { processors = before }(processors)
	processors = 0
	for name, way := range map[string]functions{"leaf": fast, "pin": pinned} {
		if g := way.enter(d, 0, 0, 0, 0); g.epoch != inCounter {
			t.Errorf("%s: a guard is in a slot of another", name)
		}
	}
}

// TestEachSlotIsWaitedFor: a guard in any slot of any processor.
func TestEachSlotIsWaitedFor(t *testing.T) {
	var d Domain
	d.addSlots()
	slots := unsafe.Slice(&d.slots.Load()[0], processors*len(line{}))
	for i := range slots {
		slots[i].Store(d.ended.Load() + 1)
		e := d.Advance()
		if e.Passed() {
			t.Errorf("an epoch passed under a guard in slot %d", i)
		}
		slots[i].Store(0)
		if !e.Passed() {
			t.Errorf("not passed, and slot %d is empty", i)
		}
	}
}

// TestFirstReadersAreInOneEpoch: two readers that find no epoch agree on one.
func TestFirstReadersAreInOneEpoch(t *testing.T) { eachWay(t, testFirstReaders) }

func testFirstReaders(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	const rounds = 5_000
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
func TestManyEndEpochs(t *testing.T) { eachWay(t, testManyEndEpochs) }

func testManyEndEpochs(t *testing.T) {
	const rounds = 5_000
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
	if e := d.Advance(); !e.Passed() || len(d.past) != 0 || d.ended.Load() != 4*rounds+1 {
		t.Errorf("passed is %t, %d epochs are kept, %d have ended", e.Passed(), len(d.past), d.ended.Load())
	}
}

// TestPassedEpochsAreCollected: the next collection frees their counters.
func TestPassedEpochsAreCollected(t *testing.T) {
	var d Domain
	var all []weak.Pointer[counters]
	var guards []Guard
	for range 5 {
		guards = append(guards, d.count())
		all = append(all, weak.Make(d.counters.Load()))
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
	for i, w := range all {
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

// Passed of an epoch that a fence has seen does not let one pass that none has.
func TestPassedGoesNoFurtherThanTheFence(t *testing.T) {
	d, g := withSlots(t)
	e := d.Advance()
	if e.Passed() {
		t.Fatal("an epoch has passed under a guard")
	}
	d.Advance()
	g.Leave()
	if !e.Passed() || d.passed.Load() != e.number {
		t.Errorf("%d epochs have passed, want %d", d.passed.Load(), e.number)
	}
}
