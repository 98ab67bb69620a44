// Closed segments: which addresses can become one, and the effects of a refusal.

package pages

import (
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// owned returns the bytes of addresses that the table of owners assigns to h.
func (h *testHeap) owned() (bytes uintptr) {
	count := func(r *region) {
		for addr := r.Base; addr < r.Base+r.used.Load(); addr += SegmentBytes {
			if *r.Owner(addr) == h.pages.ID {
				bytes += SegmentBytes
			}
		}
	}
	count(&Addresses.First)
	if chained := Addresses.chained.Load(); chained != nil {
		for _, r := range *chained {
			count(r)
		}
	}
	return bytes
}

// A closed segment whose tables would exceed the limit is returned.
func TestClosedSegmentThatTheLimitRefuses(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: int(heldBytes + tableBytes - 1)})
	if _, _, added := h.pages.AddClosedSegment(); added {
		t.Error("the limit is exceeded")
	}
	if n := h.owned(); n != 0 || h.pages.total != 0 {
		t.Errorf("the heap owns %d bytes of addresses, and knows %d", n, h.pages.total)
	}
	h.pages.MaxBytes++
	addr, _, added := h.pages.AddClosedSegment()
	if !added || h.owned() != SegmentBytes || h.pages.total != SegmentBytes {
		t.Errorf("where the limit has room: %v, %d bytes", added, h.owned())
	}
	gap := Range{addr, SegmentBytes}
	if err := h.pages.Verify(&Tally{}, gap, nil); err != nil {
		t.Error(err)
	}
	h.Close()
	if _, _, added := h.pages.AddClosedSegment(); added || h.owned() != 0 {
		t.Errorf("a closed heap takes a segment: %v, and owns %d bytes", added, h.owned())
	}
}

// Addresses with memory that the system did not take back from a closed heap do not become a
// closed segment.
func TestDirtyAddressesAreNotClosed(t *testing.T) {
	h := newHeap(t, Options{})
	dirtyAddresses(t)
	if _, _, added := h.pages.AddClosedSegment(); added {
		t.Error("dirty addresses are a closed segment")
	}
	h.check(t)
}

// dirtyAddresses makes the space hand out next a segment whose memory a closed heap could not
// return.
func dirtyAddresses(t *testing.T) {
	Addresses.mu.Lock()
	others := Addresses.returned
	Addresses.returned = nil
	Addresses.mu.Unlock()
	t.Cleanup(func() {
		for _, f := range others {
			Addresses.give(f.Base, f.Size)
		}
	})
	addr, err := Addresses.take(SegmentBytes, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := Addresses.RegionOf(addr)
	r.dirty.SetRange(r.pageIndex(addr), 1)
	defer refuse(vm.OpRevoke)()
	Addresses.give(addr, SegmentBytes)
}

// If a segment can be neither guarded nor revoked, its guards are removed: the next owner of the
// addresses would fault on them.
func TestSegmentThatIsRefusedHasNoGuards(t *testing.T) {
	addr, err := vm.Reserve(SegmentBytes, vm.PageBytes())
	if err != nil {
		t.Fatal(err)
	}
	if vm.Commit(addr, SegmentBytes) != nil || vm.Advise(addr+vm.PageBytes(), vm.PageBytes(), vm.Guard) != nil {
		t.Skip("no guards here")
	}
	advice := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpAdvise {
			if advice++; advice > 1 {
				return nil
			}
		} else if op == vm.OpCommit {
			return nil
		}
		return syscall.ENOMEM
	})
	_, err = closeSegment(addr)
	restore()
	if err == nil {
		t.Error("no error")
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if got := panicOf(func() { bytesAt(addr, SegmentBytes)[vm.PageBytes()] = 1 }); got != "" {
		t.Error(got)
	}
}
