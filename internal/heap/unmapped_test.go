// Unmapped runs: memory that the system left without access, and its return before a refusal.

package heap

import (
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
)

// Before the heap refuses a request because the system refuses memory, it maps the runs again that
// the system refused to map before.
func TestRefusalMapsLostRunsAnew(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 9<<20)
	alloc(t, h, 40000) // so that it cannot grow in place
	b, ok := h.Resize(b, 12<<20)
	if !ok {
		t.Skip("pages are not moved here")
	}
	restore := refuse(vm.OpCommit)
	h.Free(b)
	restore()
	if st := h.Stats(); st.Active == st.LargeBytes {
		t.Fatal("the run was not lost")
	}
	drained := false
	defer pin.OnWait(func(p *pin.Holders) { drained = drained || p == &h.caches.Holders })()
	restore = vm.SetFault(func(op vm.Op) error {
		if op == vm.OpCommit && !drained {
			return syscall.ENOMEM
		}
		return nil
	})
	_, err := h.Alloc(256<<20, 8, false)
	restore()
	if err != nil || !drained {
		t.Fatalf("drained: %v, %v", drained, err)
	}
	if st := h.Stats(); st.Active != st.LargeBytes {
		t.Error("the run is still lost")
	}
}
