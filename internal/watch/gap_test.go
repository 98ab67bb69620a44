package watch

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The gaps have the distribution that the weights are for.
func TestGaps(t *testing.T) {
	Seed()
	const rate, n = 1000, 200000
	for _, size := range []int64{1, 100, 1000, 3000} {
		below, alike := 0.0, 0
		for range n {
			state := settings.random.Load()
			due := gap(rate) < size
			settings.random.Store(state)
			if due == gapBelow(size, rate) {
				alike++
			}
			if due {
				below++
			}
		}
		p := chance(size, rate)
		if math.Abs(below-n*p) > 5*math.Sqrt(n*p*(1-p)) || alike != n {
			t.Errorf("%v of %d gaps are below %d, want %.0f; gapBelow says so of %d", below, n, size, n*p, alike)
		}
	}
	if gap(1) != 0 || gap(0) != 0 || gapBelow(0, 1) || !gapBelow(1, 1) {
		t.Error("rate 1 leaves gaps")
	}
	if g := gap(maxSampleRate); g < 0 {
		t.Errorf("a gap of %d", g)
	}
}

// Goroutines that use a budget at once take exactly its tokens.
func TestBudgetAtOnce(t *testing.T) {
	clock := time.Unix(1000, 0)
	SetClock(func() time.Time { return clock })
	t.Cleanup(func() { SetClock(nil) })
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
