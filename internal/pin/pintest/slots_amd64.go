//go:build !race && !freehold_portable && !asan

// The test of slots beyond the first, for packages with a pin.Table and assembly.

package pintest

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
)

// SlotsBeyondTheFirst tests that assembly serves processors beyond the first slots of a
// table that has more. setUp makes the object with the table, and returns a function that
// goroutines then call on these processors. It also wraps the functions in Go, which the
// assembly falls back on, so that each reports its name to slow: few calls may end there.
func SlotsBeyondTheFirst(t *testing.T, setUp func(slow func(call string)) (calls func())) {
	if !pin.Known() {
		t.Skip("no assembly")
	}
	const procs, rounds = 4 * pin.FirstSlots, 5_000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	var mu sync.Mutex
	slow := map[string]int{}
	calls := setUp(func(call string) {
		mu.Lock()
		defer mu.Unlock()
		slow[call]++
	})
	var n atomic.Int64 // rounds beyond the first slots
	var wg sync.WaitGroup
	for range procs { // busy, so that all processors come to run
		wg.Go(func() {
			var holders pin.Holders
			for n.Load() < rounds {
				slot := holders.Enter()
				holders.Leave(slot)
				if slot < pin.FirstSlots {
					runtime.Gosched()
					continue
				}
				n.Add(1)
				calls()
			}
		})
	}
	wg.Wait()
	for call, n := range slow {
		if n > rounds/2 {
			t.Errorf("%d calls of %s in Go in %d rounds", n, call, rounds)
		}
	}
}
