// Orders of events that the race detector judges. What forces them must not
// order them in its eyes, so it is done in functions that it does not see.

//go:build race

package pages

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

// discard gives pages back without the heap's lock. Their dirty bits share words with
// others': they are cleared under the lock.
func TestDirtyBitsAreTheLocks(t *testing.T) {
	h := newHeap(t, Options{WholePages: true})
	given, _ := alloc(t, h, 40000), alloc(t, h, 40000)

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
	h.Free(given)
	restore()
	wg.Wait()
	if !done.isSet() {
		t.Error("nothing was given back")
	}
}
