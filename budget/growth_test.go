// Growth: how long who takes off-heap memory waits, and what Stop and ticks do meanwhile.

package budget

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// waiting is a budget with a limit of 1000 MiB. Off-heap memory has 500, and Go exceeds its share
// by excess. Each collection takes took, and the excess falls by the result of shrink.
func waiting(t *testing.T, excess int64, took time.Duration, shrink func() int64) (*fake, *Budget) {
	const endless = time.Hour // a wait that is longer would never end
	f := newFake()
	b := mustStart(t, Options{Limit: 1000 * mib}, f)
	began := f.now()
	f.change(func() {
		f.offHeap, f.golang.held = 500*mib, 400*mib+excess
		f.onReclaim = func() {
			f.clock = f.clock.Add(took)
			f.golang.held -= shrink()
			if f.reclaims > 10000 || f.clock.Sub(began) > endless {
				f.golang.held = 0
			}
		}
	})
	return f, b
}

func nothing() int64 { return 0 }

// waits checks how long the next one waits who takes off-heap memory: a collection more at most,
// and a pause.
func (f *fake) waits(t *testing.T, least, more time.Duration) {
	t.Helper()
	began := f.now()
	f.passed()
	if d := f.now().Sub(began); d < least || d > least+more {
		t.Errorf("waited %v, want %v", d, least)
	}
}

// However little off-heap memory there is, the next growth asks while Go holds too much.
func TestGrowthFromNothingAsks(t *testing.T) {
	f := newFake()
	f.golang.held = 2000 * mib
	mustStart(t, Options{Limit: 1000 * mib}, f)
	if f.mark() != 1 {
		t.Errorf("watermark is %d", f.mark())
	}
}

// A collection that takes no time does not keep the program from running.
func TestGrowthLetsTheProgramRun(t *testing.T) {
	f, b := waiting(t, 110*mib, 0, nothing)
	f.waits(t, longWait, 0)
	if n := b.Stats().Reclaims; n > uint64(longWait/tickTime)+1 {
		t.Errorf("%d collections", n)
	}
}

// The more Go exceeds its share, the longer a wait is. It goes on while the excess falls by an
// eighth. On a slow machine a long wait is for several collections, and a short one for one.
func TestGrowthWaits(t *testing.T) {
	const quick, slow = 10 * time.Millisecond, 2 * time.Second
	for _, tt := range []struct {
		name   string
		excess int64
		took   time.Duration
		shrink []int64 // by each collection, and by the last from then on
		want   time.Duration
	}{
		{"long", 110 * mib, quick, []int64{0}, longWait},
		{"short", 30 * mib, quick, []int64{0}, shortWait},
		{"slow", 110 * mib, slow, []int64{0}, manyReclaims * slow},
		{"slow and short", 60 * mib, slow, []int64{0}, slow},
		{"a little less", 110 * mib, quick, []int64{1}, longWait},
		{"an eighth less, once", 128 * mib, quick, []int64{16 * mib, 0}, 2 * longWait},
		{"less than that", 128 * mib, quick, []int64{16*mib - 1, 0}, longWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := waiting(t, tt.excess, tt.took, func() int64 {
				n := tt.shrink[0]
				tt.shrink = tt.shrink[min(1, len(tt.shrink)-1):]
				return n
			})
			f.waits(t, tt.want, quick)
		})
	}
}

// Only a long wait in vain makes others short, for several times as long.
func TestGrowthWaitsBrieflyAfterALongWaitInVain(t *testing.T) {
	const took, more = 10 * time.Millisecond, 20 * time.Millisecond
	f, _ := waiting(t, 30*mib, took, nothing)
	f.waits(t, shortWait, more)
	f.change(func() { f.golang.held += 80 * mib })
	f.waits(t, longWait, more)
	f.change(func() { f.clock = f.clock.Add(shortMultiple*longWait - time.Second) })
	f.waits(t, shortWait, more)
	f.change(func() {
		f.clock = f.clock.Add(time.Second)
		f.onReclaim = func() { f.clock = f.clock.Add(longWait); f.golang.held = 50 * mib }
	})
	f.waits(t, longWait, 0) // and is worth it
	f.change(func() { f.golang.held = 510 * mib; f.onReclaim = func() { f.clock = f.clock.Add(took) } })
	f.waits(t, longWait, more)
}

// A growth that has been let through leaves a process at rest as it was.
func TestTicksAreRareAfterAGrowth(t *testing.T) {
	f := newFake()
	b := mustStart(t, Options{Limit: 1000 * mib}, f)
	before := b.turn()
	f.passed()
	if next := b.turn(); next != before || next == tickTime {
		t.Errorf("the next tick is in %v, and was to be in %v", next, before)
	}
}

// Nothing that Stop has overtaken begins a collection.
func TestStopEndsWaits(t *testing.T) {
	f, b := waiting(t, 110*mib, 0, nothing)
	b.tick()
	b.Stop()
	reclaims := b.Stats().Reclaims
	f.waits(t, 0, 0)
	b.tick()
	b.reclaimAndWait()
	if n := b.Stats().Reclaims; n != reclaims {
		t.Errorf("%d collections after Stop", n-reclaims)
	}
}

// Stop returns when the collection that runs has ended.
func TestStopWaitsForACollection(t *testing.T) {
	f := newFake()
	f.reclaimed = make(chan bool)
	b := mustStart(t, Options{Limit: 1000 * mib}, f)
	f.change(func() { f.golang.held = 2000 * mib })
	b.tick()
	b.tick() // one collection runs at a time
	if n := b.Stats().Reclaims; n != 1 {
		t.Errorf("%d collections", n)
	}
	var order []string
	stopped := make(chan bool)
	go func() {
		b.Stop()
		f.change(func() { order = append(order, "stopped") })
		close(stopped)
	}()
	for !b.hasStopped() {
		runtime.Gosched()
	}
	for range 1000 { // one that does not wait returns
		runtime.Gosched()
	}
	f.change(func() { order = append(order, "collected") })
	f.reclaimed <- true
	<-stopped
	if want := []string{"collected", "stopped"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

// Ticks run collections for a part of the time, the larger the more of the headroom Go holds.
func TestTicksCollectForAPartOfTheTime(t *testing.T) {
	for _, step := range waitTable {
		const took = time.Second
		excess := step.quarters*25*mib + mib
		t.Run(formatSize(excess), func(t *testing.T) {
			f, b := waiting(t, excess, took, nothing)
			tick := func(reclaims uint64) {
				t.Helper()
				b.tick()
				b.reclaims.wait()
				if n := b.Stats().Reclaims; n != reclaims {
					t.Errorf("%d collections, want %d", n, reclaims)
				}
			}
			tick(1)
			f.change(func() { f.clock = f.clock.Add(time.Duration(step.pause)*took - 1) })
			tick(1)
			f.change(func() { f.clock = f.clock.Add(1) })
			tick(2)
		})
	}
}
