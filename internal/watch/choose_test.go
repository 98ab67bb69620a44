package watch_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/watch"
)

// A larger block is more likely to be sampled, and the samples represent the allocated bytes.
// Each block is guarded with the same probability, with samples and without, and samples
// represent as much as without guards.
func TestSamplesAndGuardsAreIndependent(t *testing.T) {
	total := 40000
	if testing.Short() {
		total = 4000
	}
	for _, n := range []int{0, 1, 2, 7, 100} {
		for _, rate := range []int{0, 1, 3, 50, 4096, 1 << 30} {
			for _, size := range []int{1, 64, 5000, 40000, 100000} {
				// A guard takes long, so each n has about the same number of them.
				testChoice(t, n, rate, size, min(total, 4000*max(n, 10))/(1+size/1000))
			}
		}
	}
	if !watchesZones {
		return
	}
	keepFreed(t, 1<<20)
	for _, size := range []int{1, 5000} {
		testChoice(t, 2, 50, size, 4000)
		testChoice(t, 0, 4096, size, 4000)
	}
}

// testChoice allocates and frees calls blocks of a size.
func testChoice(t *testing.T, n, rate, size, calls int) {
	if n > 0 && !watch.CanGuard {
		return
	}
	defer watch.SetSampleRate(watch.SetSampleRate(rate))
	defer watch.SetGuardRate(watch.SetGuardRate(n, 0), 0)
	watch.Seed()
	name := fmt.Sprint(nameOf(t), n, rate, size, calls, watch.Zone())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that there is one countdown
	h := newHeap(t, Options{Name: name})
	for range calls {
		h.Free(alloc(t, h, size))
	}
	within := func(what string, got, p, each float64) {
		tolerance := 5*math.Sqrt(float64(calls)*p*(1-p))*each + 1
		if want := float64(calls) * p * each; math.Abs(got-want) > tolerance {
			t.Errorf("1/%d, rate %d, size %d: %v %s, want %v, at most %v more or less", n, rate, size, got, what, want, tolerance)
		}
	}
	st := h.Stats()
	if n > 0 {
		within("guarded", float64(st.GuardedEver), 1/float64(n), 1)
	}
	if st.GuardsSkipped != 0 {
		t.Errorf("%d skipped", st.GuardsSkipped)
	}
	u := usage(name)[""]
	if p := watch.Chance(int64(size), int64(rate)); p > 0 {
		within("objects sampled", float64(u.AllocObjects), p, 1/p)
		if size >= 64 { // the bytes of a sample are rounded
			within("bytes sampled", float64(u.AllocBytes), p, float64(size)/p)
		}
	}
	if u.AllocBytes != u.FreeBytes || u.AllocObjects != u.FreeObjects {
		t.Errorf("all is free, and the samples say %+v", u)
	}
	h.Close()
}

// A new rate is in force when SetSampleRate or SetGuardRate returns, in caches that exist, and
// these tell the old value.
func TestRatesOfCachesInUse(t *testing.T) {
	sampleAt(t, math.MaxInt)
	h := newHeap(t, Options{Name: nameOf(t)})
	pairs := func() (guarded uint64) {
		for range 200 {
			h.Free(alloc(t, h, 64))
		}
		return h.Stats().GuardedEver
	}
	pairs()
	wantUsage(t, h.Stats().Name, 0, 0, 0, 0)
	if was := watch.SetSampleRate(1); int64(was) != min(math.MaxInt, watch.MaxSampleRate) {
		t.Errorf("the rate was %d", was)
	}
	pairs()
	wantUsage(t, h.Stats().Name, 200, 12800, 200, 12800)
	b := alloc(t, h, 100)
	watch.SetSampleRate(0)
	pairs()
	wantUsage(t, h.Stats().Name, 201, 12900, 200, 12800)
	h.Free(b) // it was sampled, and counts
	wantUsage(t, h.Stats().Name, 201, 12900, 201, 12900)
	for want, f := range map[string]func(){
		"freehold: track.SetSampleRate: bytes -1, want 0 or more":    func() { watch.SetSampleRate(-1) },
		"freehold: track.SetGuardRate: n -1, want 0 or more":         func() { watch.SetGuardRate(-1, 0) },
		"freehold: track.SetGuardRate: perSecond -1, want 0 or more": func() { watch.SetGuardRate(0, -1) },
	} {
		if got := panicOf(f); got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}

	guardAt(t, 0, 0)
	for i, n := range []int{1, 0, 1} {
		if was := watch.SetGuardRate(n, 0); watch.CanGuard && was != i%2 {
			t.Errorf("the rate was %d", was)
		}
		if got, want := pairs(), uint64(200*(i/2+1)); watch.CanGuard && got != want {
			t.Errorf("%d guarded, want %d", got, want)
		}
	}
}

// No block is an event before the countdown has ended, whether a cache has it ready, or in a spare
// magazine, or not.
func TestNoEventBeforeTheCountdownEnds(t *testing.T) {
	sampleAt(t, math.MaxInt)
	h := newHeap(t, Options{Name: nameOf(t)})
	for range 3 {
		var all [][]byte
		for range 1000 {
			all = append(all, alloc(t, h, 64), alloc(t, h, 64<<10))
		}
		for _, b := range all {
			h.Free(b)
		}
	}
	wantUsage(t, h.Stats().Name, 0, 0, 0, 0)
}

// There are no more guards than the budget has, of a second's at once, and those that are
// left out are counted.
func TestGuardBudget(t *testing.T) {
	clock := time.Unix(1000, 0)
	watch.SetClock(func() time.Time { return clock })
	t.Cleanup(func() { watch.SetClock(nil) })
	guardAt(t, 1, 10)
	h := newHeap(t, Options{})
	guarded, skipped := uint64(0), uint64(0)
	for _, step := range []struct {
		pass    time.Duration
		blocks  int
		guarded uint64
	}{
		{0, 15, 10},
		{99 * time.Millisecond, 5, 0},
		{time.Millisecond, 5, 1},
		{time.Hour, 5, 5}, // no more than a second's tokens are kept
		{0, 10, 5},
		{250 * time.Millisecond, 10, 2},
		{50 * time.Millisecond, 10, 1},
		{-time.Hour, 1, 0},
	} {
		clock = clock.Add(step.pass)
		for range step.blocks {
			h.Free(alloc(t, h, 64))
		}
		guarded += step.guarded
		skipped += uint64(step.blocks) - step.guarded
		if st := h.Stats(); st.GuardedEver != guarded || st.GuardsSkipped != skipped {
			t.Errorf("after %v: %d guarded and %d skipped, want %d and %d", step.pass, st.GuardedEver, st.GuardsSkipped, guarded, skipped)
		}
	}
}
