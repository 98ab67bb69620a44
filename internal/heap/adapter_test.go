package heap

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// Exported for the tests that need alloctest, which imports this package.

// Adapter is a Heap with the methods of freehold.Allocator.
type Adapter struct{ *Heap }

func (a Adapter) Alloc(size, align int) ([]byte, error)  { return a.Heap.Alloc(size, align, false) }
func (a Adapter) Zeroed(size, align int) ([]byte, error) { return a.Heap.Alloc(size, align, true) }

var NewHeap = newHeap

var (
	Check  = (*Heap).check
	Fill   = fill
	AllSet = allSet
)

// Tick does the work of the timer.
func (h *Heap) Tick() { h.tick() }

// PlainAdapter allocates and frees without assembly.
type PlainAdapter struct{ Adapter }

func (a PlainAdapter) Alloc(size, align int) ([]byte, error) {
	return inGo.alloc(a.Heap, size, align, false)
}
func (a PlainAdapter) Zeroed(size, align int) ([]byte, error) {
	return inGo.alloc(a.Heap, size, align, true)
}
func (a PlainAdapter) Free(b []byte) { inGo.free(a.Heap, b) }

var (
	pinned     = functions{allocPinned, mallocInGo, freePinned, freePointerPinned}
	pinnedRuns = runFunctions{allocRunPinned, freeRunPinned}
)

// Pin has heaps take pins in a test, as they do where leaves cannot be called without.
func Pin(t testing.TB) {
	was := inGo
	inGo.functions, inGo.runFunctions = pinned, pinnedRuns
	t.Cleanup(func() { inGo = was })
}

// SampleAt sets the rate of samples for a test.
func SampleAt(t testing.TB, rate int) {
	was := watch.SetSampleRate(rate)
	t.Cleanup(func() { watch.SetSampleRate(was) })
}

// Homes gives heaps of a test n homes. Each exchange is of the next group.
func Homes(t testing.TB, n int) {
	var calls atomic.Int64
	t.Cleanup(small.SetHomes(n, func(int) int { return int(calls.Add(1)) }))
}

// GuardAt makes one block in n a guarded one during a test.
func GuardAt(t testing.TB, n int) {
	if n > 0 && !watch.CanGuard {
		t.Skip("no guards in this build")
	}
	was := watch.SetGuardRate(n, 0)
	t.Cleanup(func() { watch.SetGuardRate(was, 0) })
}

// CheckBlocks gives the blocks of a test red zones, and keeps freed ones in a quarantine of the
// given bytes.
func CheckBlocks(t testing.TB, bytes int) {
	was := watch.SetQuarantine(bytes)
	t.Cleanup(func() { watch.SetQuarantine(was) })
}

// EachRate runs a test without sampling, with some blocks sampled and with all.
func EachRate(t *testing.T, test func(t *testing.T)) {
	rates := []int{0, 1, 300}
	if testing.Short() {
		rates = rates[:2]
	}
	for _, rate := range rates {
		t.Run(fmt.Sprint("rate=", rate), func(t *testing.T) {
			SampleAt(t, rate)
			test(t)
		})
	}
}
