package pages

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// A run that is mapped anew gets the placement with mu held. Otherwise a Place could come in
// between, and the run would get the old placement after it.
func TestPlacementOfARunIsAtomicWithPlace(t *testing.T) {
	allowed, err := vm.AllowedNodes()
	if err != nil {
		t.Skip(err)
	}
	h := newHeap(t, Options{})
	if err := h.pages.Place(vm.Interleaved, allowed); err != nil {
		t.Fatal(err)
	}
	b := moved(t, h)
	placed := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpPlace {
			placed++
			if h.pages.mu.TryLock() {
				h.pages.mu.Unlock()
				t.Error("placed without mu")
			}
		}
		return nil
	})
	h.Free(b)
	restore()
	if placed == 0 {
		t.Error("the run was not placed")
	}
}
