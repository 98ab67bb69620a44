// Orders of events that the race detector judges. What forces them must not
// order them in its eyes, so it is done in functions that it does not see.

//go:build race

package pages

import (
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/test/unordered"
	"github.com/freehold-go/freehold/internal/vm"
)

// discard gives pages back without the heap's lock. Their dirty bits share words with
// others': they are cleared under the lock.
func TestDirtyBitsAreTheLocks(t *testing.T) {
	h := newHeap(t, Options{WholePages: true})
	given, _ := alloc(t, h, 40000), alloc(t, h, 40000)

	var inside, done unordered.Signal
	var wg sync.WaitGroup
	wg.Go(func() {
		inside.Wait()
		alloc(t, h, 40000)
		done.Set()
	})
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit && !inside.IsSet() {
			inside.Set()
			done.Wait() // the bits are set before they are cleared
		}
		return nil
	})
	h.Free(given)
	restore()
	wg.Wait()
	if !done.IsSet() {
		t.Error("nothing was given back")
	}
}
