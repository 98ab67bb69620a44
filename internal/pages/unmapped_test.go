// Unmapped runs: runs that the system left inaccessible, and their return.

package pages

import (
	"runtime/debug"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// lose makes the system leave a run of 12 MiB inaccessible.
func lose(t *testing.T, h *testHeap) {
	t.Helper()
	b := moved(t, h)
	h.pages.Alarm.Stop()
	restore := refuse(vm.OpCommit)
	h.Free(b)
	restore()
	if h.pages.unmapped.Head == 0 {
		t.Fatal("the run was not lost")
	}
}

func TestLostRunWakesTheTimer(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	lose(t, h)
	if !h.pages.Alarm.Set() {
		t.Error("asleep with a run to map anew")
	}
	restore := refuse(vm.OpCommit)
	h.Tick()
	restore()
	if h.pages.unmapped.Head == 0 || !h.pages.Alarm.Set() {
		t.Error("asleep after a tick that could not map the run anew")
	}
}

func TestLostRunIsNotFree(t *testing.T) {
	h := newHeap(t, Options{})
	lose(t, h)
	h.check(t)
}

func TestTrimMapsLostRunsAnew(t *testing.T) {
	h := newHeap(t, Options{})
	lose(t, h)
	h.Trim()
	if st := h.Stats(); h.pages.unmapped.Head != 0 || st.Active != st.LargeBytes {
		t.Errorf("after Trim: %+v", st)
	}
}

func TestRunThatWasLostHasAccessWhenItIsBack(t *testing.T) {
	h := newHeap(t, Options{})
	b := moved(t, h)
	restore := refuse(vm.OpCommit)
	h.Free(b)
	restore()
	if h.pages.unmapped.Head == 0 {
		t.Fatal("the run was not lost")
	}
	h.Tick()
	if h.pages.unmapped.Head != 0 {
		t.Fatal("the run is still lost")
	}
	b = alloc(t, h, 12<<20)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if got := panicOf(func() { b[5] = 1 }); got != "" {
		t.Error(got)
	}
}
