package pin_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
)

// A slot has one holder at a time, with any number of goroutines and processors.
func TestSlotHasOneHolder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var holders pin.Holders
	var held [64]struct {
		n int // not atomic: the slot guards it
		_ [56]byte
	}
	var total atomic.Int64
	const rounds = 2000
	for procs := 1; procs <= 8; procs++ {
		runtime.GOMAXPROCS(procs)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range rounds {
					slot := holders.Enter()
					held[slot].n++
					holders.Leave(slot)
					total.Add(1)
				}
			})
		}
		wg.Wait()
	}
	sum := int64(0)
	for i := range held {
		sum += int64(held[i].n)
	}
	if sum != total.Load() {
		t.Errorf("%d holders counted %d", total.Load(), sum)
	}
}

// EnterAt returns the goroutine's earlier slot if it is free and the build can choose. In every
// build the goroutine then holds the returned slot.
func TestEnterAtTheSlotBefore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // makes each build return the same slot
	var holders pin.Holders
	for range 100 {
		slot := holders.Enter()
		holders.Leave(slot)
		again := holders.EnterAt(slot)
		holders.Leave(again)
		if again != slot {
			t.Fatalf("at %d and then at %d", slot, again)
		}
	}
}
