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
		below := 0.0
		for range n {
			if gap(rate) < size {
				below++
			}
		}
		p := chance(size, rate)
		if math.Abs(below-n*p) > 5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%v of %d gaps are below %d, want %.0f", below, n, size, n*p)
		}
	}
	if gap(1) != 0 || gap(0) != 0 {
		t.Error("rate 1 leaves gaps")
	}
	if g := gap(maxSampleRate); g < 0 {
		t.Errorf("a gap of %d", g)
	}
}

// Remembered chances are those that are computed, whatever other arguments share their place.
func TestChancesAreRemembered(t *testing.T) {
	for range 2 {
		for size := int64(1); size < 1<<30; size += size/7 + 1 {
			for _, rate := range []int64{2, 1000, 512 << 10, maxSampleRate} {
				if got, want := chance(size, rate), -math.Expm1(-float64(size)/float64(rate)); got != want {
					t.Fatalf("chance(%d, %d) = %v, want %v", size, rate, got, want)
				}
			}
		}
	}
	if got := chance(0, 1000); got != 0 {
		t.Errorf("chance(0, 1000) = %v", got)
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
