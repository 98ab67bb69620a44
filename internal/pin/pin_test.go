package pin_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
)

// A place has one holder at a time, however many goroutines and processors
// there are.
func TestPlaceHasOneHolder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var places pin.Places
	var held [pin.Max]struct {
		n int // not atomic: the place guards it
		_ [56]byte
	}
	var total, outside atomic.Int64
	const rounds = 2000
	for procs := 1; procs <= 8; procs++ {
		runtime.GOMAXPROCS(procs)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range rounds {
					at := places.Enter()
					if at < pin.Max {
						held[at].n++
					}
					places.Leave(at)
					if at >= pin.Max {
						outside.Add(1)
					}
					total.Add(1)
				}
			})
		}
		wg.Wait()
	}
	sum := outside.Load()
	for i := range held {
		sum += int64(held[i].n)
	}
	if sum != total.Load() {
		t.Errorf("%d holders counted %d", total.Load(), sum)
	}
}

// After Wait nobody works on what was taken out of the table before.
func TestWait(t *testing.T) {
	var places pin.Places
	var table [pin.Max]atomic.Pointer[[2]int]
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !done.Load() {
				at := places.Enter()
				if v := table[at].Load(); v != nil {
					v[0]++
					v[1]++
				}
				places.Leave(at)
				runtime.Gosched()
			}
		})
	}
	for range 200 {
		var taken []*[2]int
		for i := range min(16, pin.Max) {
			if v := table[i].Swap(&[2]int{}); v != nil {
				taken = append(taken, v)
			}
		}
		places.Wait()
		for _, v := range taken {
			if v[0] != v[1] {
				t.Errorf("still at work after Wait: %v", *v)
			}
		}
		runtime.Gosched()
	}
	done.Store(true)
	wg.Wait()
}

// A goroutine that was at a place gets it again while nobody else holds it, where
// the build can choose; in any case it holds the one that it gets.
func TestEnterAtThePlaceBefore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that it can choose in every build
	var places pin.Places
	for range 100 {
		at := places.Enter()
		places.Leave(at)
		again := places.EnterAt(at)
		places.Leave(again)
		if again != at {
			t.Fatalf("at %d and then at %d", at, again)
		}
	}
}

// Each visits every place that anybody may hold.
func TestEachVisitsAllPlaces(t *testing.T) {
	var places pin.Places
	seen := map[int]bool{}
	places.Each(func(place int) { seen[place] = true })
	if len(seen) != pin.Max {
		t.Errorf("%d places of %d", len(seen), pin.Max)
	}
}
