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

// Slots has a package's functions to test a table's slots.
type Slots struct {
	// Fill fills the processor's slot, by functions in Go.
	Fill func()

	// Serve calls each function with assembly, unless the slot's value cannot serve all the
	// calls. The caller holds the slot. It reports whether it called them.
	Serve func(slot int) bool
}

// SlotsBeyondTheFirst tests that assembly serves processors beyond the first slots of a table.
// setUp makes the object with the table. It also replaces the Go functions on which the assembly
// falls back by functions that report their names to slow: none may be called. They run while a
// slot is held, so they do nothing else.
//
// A goroutine holds the slot from its look at the value to the end of the calls, so other
// goroutines cannot change the result.
func SlotsBeyondTheFirst(t *testing.T, setUp func(slow func(call string)) Slots) {
	if !pin.AssemblyRuns() {
		t.Skip("no assembly runs here")
	}
	const procs, rounds = 4 * pin.FirstSlots, 1_000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	var names [8]string // of calls that ended in Go
	var fell atomic.Int64
	slots := setUp(func(call string) {
		if i := fell.Add(1) - 1; i < int64(len(names)) {
			names[i] = call
		}
	})
	var served atomic.Int64 // rounds beyond the first slots
	var wg sync.WaitGroup
	for range procs { // busy, so that all processors come to run
		wg.Go(func() {
			var holders pin.Holders
			for served.Load() < rounds && fell.Load() == 0 {
				slot := holders.Enter()
				beyond := slot >= pin.FirstSlots
				done := beyond && slots.Serve(slot)
				holders.Leave(slot)
				switch {
				case done:
					served.Add(1)
				case beyond:
					slots.Fill()
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	if n := fell.Load(); n > 0 {
		t.Errorf("calls in Go of %q, where assembly can serve them", names[:min(n, int64(len(names)))])
	}
}
