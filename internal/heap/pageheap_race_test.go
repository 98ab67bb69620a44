// Orders of events that the race detector judges. What forces them must not
// order them in its eyes, so it is done in functions that it does not see.

//go:build race

package heap

import (
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// signal is a flag that orders nothing.
type signal struct{ is bool }

//go:norace
//go:noinline
func (s *signal) set() { s.is = true }

//go:norace
//go:noinline
func (s *signal) isSet() bool { return s.is }

func (s *signal) wait() {
	for !s.isSet() {
		runtime.Gosched()
	}
}

// The bits of pages that are being given back share words with others': they
// are read and cleared under the heap's lock.
func TestDirtyBitsAreTheLocks(t *testing.T) {
	h := newHeap(t, Options{})
	given, _ := alloc(t, h, 40000), alloc(t, h, 40000)
	h.Free(given)

	var inside, done signal
	var wg sync.WaitGroup
	wg.Go(func() {
		inside.wait()
		alloc(t, h, 40000)
		done.set()
	})
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit && !inside.isSet() {
			inside.set()
			done.wait() // the bits are set before they are cleared
		}
		return nil
	})
	h.Trim()
	restore()
	wg.Wait()
	if !done.isSet() {
		t.Error("nothing was given back")
	}
}
