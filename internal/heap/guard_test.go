// Guards: which blocks are guarded, and the budget.

package heap

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// guardAt has one block in n guarded for the rest of the test.
func guardAt(t testing.TB, n, perSecond int) {
	if n > 0 && !CanGuard {
		t.Skip("no guards in this build")
	}
	was := SetGuardRate(n, perSecond)
	sampling.random.Store(1)
	t.Cleanup(func() { SetGuardRate(was, 0) })
}

// Each block is guarded with the same probability, with samples and without, and samples
// represent as much as without guards.
func TestOneBlockInNIsGuarded(t *testing.T) {
	total := 40000
	if testing.Short() {
		total = 4000
	}
	for _, n := range []int{1, 2, 7, 100} {
		for _, rate := range []int{0, 1, 3, 50, 4096, 1 << 30} {
			for _, size := range []int{1, 64, 5000, 40000} {
				// A guard takes long, so that there are about as many at each n.
				testOneInN(t, n, rate, size, min(total, 4000*n)/(1+size/1000))
			}
		}
	}
}

// testOneInN allocates and frees calls blocks of a size.
func testOneInN(t *testing.T, n, rate, size, calls int) {
	sampleAt(t, rate)
	guardAt(t, n, 0)
	name := fmt.Sprint(nameOf(t), n, rate, size)
	h := newHeap(t, Options{Name: name})
	o := newLocalCache(h) // whose countdown is no other goroutine's
	for range calls {
		b, err := o.Alloc(size, 8, false)
		if err != nil {
			t.Fatal(err)
		}
		o.Free(b)
	}
	o.Close()
	within := func(what string, got, p, each float64) {
		tolerance := 5*math.Sqrt(float64(calls)*p*(1-p))*each + 1
		if want := float64(calls) * p * each; math.Abs(got-want) > tolerance {
			t.Errorf("1/%d, rate %d, size %d: %v %s, want %v, at most %v more or less", n, rate, size, got, what, want, tolerance)
		}
	}
	st := h.Stats()
	within("guarded", float64(st.GuardedEver), 1/float64(n), 1)
	if st.GuardsSkipped != 0 {
		t.Errorf("%d skipped", st.GuardsSkipped)
	}
	u := usage(name)
	if p := chance(int64(size), int64(rate)); p > 0 {
		within("objects sampled", float64(u.AllocObjects), p, 1/p)
	}
	if u.AllocBytes != u.FreeBytes {
		t.Errorf("all is free, and the samples say %+v", u)
	}
}

// Without guards nothing is guarded, and SetGuardRate tells the old value.
func TestSetGuardRate(t *testing.T) {
	guardAt(t, 1, 0)
	SetGuardRate(0, 0)
	sampleAt(t, 100)
	h := newHeap(t, Options{Name: nameOf(t)})
	pairs := func() uint64 {
		for range 100 {
			h.Free(alloc(t, h, 64))
		}
		return h.Stats().GuardedEver
	}
	if n := pairs(); n != 0 {
		t.Errorf("%d guarded", n)
	}
	if was := SetGuardRate(1, 0); was != 0 {
		t.Errorf("the rate was %d", was)
	}
	if n := pairs(); n != 100 {
		t.Errorf("%d guarded", n)
	}
	if was := SetGuardRate(0, 0); was != 1 {
		t.Errorf("the rate was %d", was)
	}
	if n := pairs(); n != 100 {
		t.Errorf("%d guarded", n)
	}
	for want, f := range map[string]func(){
		"freehold: track.SetGuardRate: n -1, want 0 or more":         func() { SetGuardRate(-1, 0) },
		"freehold: track.SetGuardRate: perSecond -1, want 0 or more": func() { SetGuardRate(0, -1) },
	} {
		if got := panicOf(f); got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
}

// There are no more guards than the budget has, of a second's at once, and those that are
// left out are counted.
func TestGuardBudget(t *testing.T) {
	clock := time.Unix(1000, 0)
	now = func() time.Time { return clock }
	t.Cleanup(func() { now = time.Now })
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

// Goroutines that use a budget at once take what it has, while another sets it and then.
func TestBudgetAtOnce(t *testing.T) {
	clock := time.Unix(1000, 0)
	now = func() time.Time { return clock }
	t.Cleanup(func() { now = time.Now })
	var b tokenBucket
	take := func() (taken int64) {
		var n atomic.Int64
		var takers sync.WaitGroup
		for range 4 {
			takers.Go(func() {
				for range 500 {
					if b.take() {
						n.Add(1)
					}
				}
			})
		}
		takers.Wait()
		return n.Load()
	}
	var setter sync.WaitGroup
	setter.Go(func() {
		for range 500 {
			b.set(10)
		}
	})
	take()
	setter.Wait()
	b.set(1000)
	if n := take(); n != 1000 {
		t.Errorf("%d tokens were taken of 1000", n)
	}
}

// A heap whose blocks are not sampled, and one of whole pages, have no guards.
func TestHeapsWithoutGuards(t *testing.T) {
	guardAt(t, 1, 0)
	for _, o := range []Options{{Unsampled: true}, {WholePages: true}} {
		h := newHeap(t, o)
		for _, size := range []int{1, 1000, 100000} {
			h.Free(alloc(t, h, size))
		}
		if st := h.Stats(); st.GuardedEver != 0 {
			t.Errorf("%+v: %d blocks are guarded", o, st.GuardedEver)
		}
	}
}

// Goroutines that share a heap free each other's guarded blocks, while others are not
// guarded and the rate changes.
func TestGuardsAtOnce(t *testing.T) {
	guardAt(t, 3, 0)
	h := newHeap(t, Options{})
	blocks := make(chan []byte, 64)
	var makers, takers sync.WaitGroup
	for i := range 4 {
		makers.Go(func() {
			for j := range 500 {
				b, err := h.Alloc(1+(i*977+j*131)%9000, 8, true)
				if err != nil || !allSet(b, 0) {
					t.Errorf("%d bytes: %v", len(b), err)
					return
				}
				fill(b, byte(len(b)))
				blocks <- b
				if j%100 == 0 {
					SetGuardRate(1+j/100, 0)
				}
			}
		})
		takers.Go(func() {
			for b := range blocks {
				if !allSet(b, byte(len(b))) {
					t.Errorf("a block of %d bytes was changed", len(b))
				}
				h.Free(b)
			}
		})
	}
	makers.Wait()
	close(blocks)
	takers.Wait()
	h.check(t)
	if st := h.Stats(); st.Blocks != 0 || st.GuardedEver == 0 {
		t.Errorf("%+v", st)
	}
}

// The budget's worst case is what GuardsPerSecond pairs take of a processor.
func BenchmarkPairGuarded(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("all/size=%d", size), func(b *testing.B) {
			guardAt(b, 1, 0)
			pairs(b, size)
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*GuardsPerSecond*100, "%cpu")
		})
	}
	b.Run("parallel/size=64", func(b *testing.B) {
		guardAt(b, 1, 0)
		h := makeHeap(Options{})
		defer h.Close()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p, _ := h.Alloc(64, 8, false)
				p[0] = 1
				h.Free(p)
			}
		})
	})
	for _, size := range []int{64, 1 << 10} {
		b.Run(fmt.Sprintf("budget/size=%d", size), func(b *testing.B) {
			guardAt(b, 10000, GuardsPerSecond)
			pairs(b, size)
		})
	}
}

func pairs(b *testing.B, size int) {
	h := makeHeap(Options{})
	defer h.Close()
	for b.Loop() {
		p, _ := h.Alloc(size, 8, false)
		p[0] = 1
		h.Free(p)
	}
}
