package pin_test

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/pin"
)

// TestWaitOutlastsAHolder: a goroutine is at its slot when Wait begins, and stays
// for a while, unless it sees that Wait has returned.
func TestWaitOutlastsAHolder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor: nobody can hold a slot while another goroutine runs")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would wait for the holder too
	runtime.GC()
	const stay = 20 * time.Millisecond
	var (
		holders                          pin.Holders
		holds, waiting, returned, forced atomic.Bool
		early                            bool
		left                             = make(chan struct{})
	)
	defer pin.OnWait(func(p *pin.Holders) {
		if p == &holders {
			waiting.Store(true)
		}
	})()
	go func() {
		defer close(left)
		slot := holders.Enter()
		holds.Store(true)
		for !waiting.Load() && !forced.Load() {
		}
		for since := time.Now(); time.Since(since) < stay && !early; {
			early = returned.Load()
		}
		holders.Leave(slot)
	}()
	for !holds.Load() {
		runtime.Gosched()
	}
	holders.Wait()
	returned.Store(true)
	forced.Store(true)
	<-left
	if early || !waiting.Load() {
		t.Errorf("Wait has returned before the slot was left: %t; OnWait was called: %t", early, waiting.Load())
	}
}
