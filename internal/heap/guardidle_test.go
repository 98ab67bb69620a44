// Idle guard runs: which are used, and which are where the system refuses.

package heap

import (
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// A run that the system does not open costs nothing, and is the next one that is tried.
func TestRunsThatAreNotOpened(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{})
		for range 2 {
			h.Free(alloc(t, h, 64))
		}
		g, before := h.theGuards(), h.Stats()
		segments, uncarved := len(g.segments), g.uncarved
		const calls = 2000 // more than a segment has runs
		restore := vm.SetFault(func(op vm.Op) error {
			if op == vm.OpAdvise || op == vm.OpCommit {
				return syscall.ENOMEM
			}
			return nil
		})
		for range calls {
			h.Free(alloc(t, h, 64)) // an ordinary block, which is cached
		}
		restore()
		st := h.Stats()
		if st.GuardedEver != before.GuardedEver || st.GuardsSkipped != calls {
			t.Errorf("%d guarded and %d skipped, want %d and %d", st.GuardedEver, st.GuardsSkipped, before.GuardedEver, calls)
		}
		uncarved.Base, uncarved.Size = uncarved.Base+guardUnit(), uncarved.Size-guardUnit()
		if len(g.segments) != segments || g.uncarved != uncarved {
			t.Errorf("%d segments, and %+v is left, want %d and %+v", len(g.segments), g.uncarved, segments, uncarved)
		}
		h.check(t)
		h.Trim()
		if st = h.Stats(); st.Blocks != 0 || st.Committed != st.Metadata {
			t.Errorf("all is free: %+v", st)
		}
		h.Free(alloc(t, h, 64))
		if n := h.Stats().GuardedEver; n != before.GuardedEver+1 {
			t.Errorf("%d guarded in the end, want %d", n, before.GuardedEver+1)
		}
	})
}

// refuseGuardSegments has the system refuse to make a new segment inaccessible: by guards,
// which are tried first, and by revoking it. Calls of others, such as purges of another test's
// heap, go on.
func refuseGuardSegments() (restore func()) {
	return vm.SetFault(func(op vm.Op) error {
		if (op == vm.OpAdvise || op == vm.OpRevoke) && isWithin("pages.closeSegment") {
			return syscall.ENOMEM
		}
		return nil
	})
}

// isWithin reports whether a function is among the callers.
func isWithin(function string) bool {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// Where there is no new segment, blocks leave the quarantine before it is full.
func TestQuarantineEndsBeforeGuardsDo(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("a new segment is inaccessible as it comes")
	}
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{})
		h.Free(alloc(t, h, 64))
		g, runs := h.theGuards(), 1
		for ; g.uncarved.Size > 0; runs++ {
			h.Free(alloc(t, h, 64))
		}
		if g.waiting.blocks != runs || len(g.segments) != 1 {
			t.Fatalf("%+v is in quarantine, of %d runs in %d segments", g.waiting, runs, len(g.segments))
		}
		defer refuseGuardSegments()()
		var all [][]byte
		for range runs {
			all = append(all, alloc(t, h, 64))
		}
		if st := h.Stats(); st.Guarded != runs || st.GuardsSkipped != 0 {
			t.Errorf("%d guarded and %d skipped, want %d", st.Guarded, st.GuardsSkipped, runs)
		}
		last := alloc(t, h, 64)
		if st := h.Stats(); st.Guarded != runs || st.GuardsSkipped != 1 || len(g.segments) != 1 {
			t.Errorf("%d guarded and %d skipped of %d segments, want %d and 1 of 1", st.Guarded, st.GuardsSkipped, len(g.segments), runs)
		}
		for _, b := range append(all, last) {
			h.Free(b)
		}
	})
}

// Of runs that leave the quarantine together, the one that waited longest is used first.
func TestIdleRunsAreUsedInOrder(t *testing.T) {
	guardAt(t, 1, 0)
	was := quarantineMax
	t.Cleanup(func() { quarantineMax = was })
	h := newHeap(t, Options{})
	var all [5][]byte
	for i := range all {
		all[i] = alloc(t, h, 64)
	}
	freed := []int{2, 0, 3, 1, 4}
	for at, i := range freed {
		if at == len(freed)-1 {
			quarantineMax.blocks = 0 // all leave
		}
		h.Free(all[i])
	}
	for at, i := range freed {
		b := alloc(t, h, 64)
		defer h.Free(b)
		if addrOf(b) != addrOf(all[i]) {
			t.Errorf("use %d is of the run at %#x, want %#x", at, addrOf(b), addrOf(all[i]))
		}
	}
}

// Guarded blocks count among the allocations and frees that no cache serves.
func TestTrafficOfGuardedBlocks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one cache of a processor
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	o := newLocalCache(h)
	defer o.Close()
	pair := func() {
		b, err := o.Alloc(64, 8, false)
		if err != nil {
			t.Fatal(err)
		}
		o.Free(b)
	}
	pair() // fills the cache
	before := h.Stats()
	for range 10 {
		pair()
	}
	st := h.Stats()
	if allocs, frees := st.SlowAllocs-before.SlowAllocs, st.SlowFrees-before.SlowFrees; allocs != 10 || frees != 10 {
		t.Errorf("%d allocations and %d frees, want 10", allocs, frees)
	}
}
