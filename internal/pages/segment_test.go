// Segments: the addresses of one heap.

package pages

import (
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// held returns the bytes of addresses that heaps hold or have lost: the used ones except
// returned ones.
func held() (n uintptr) {
	Addresses.mu.Lock()
	defer Addresses.mu.Unlock()
	n = Addresses.First.used.Load()
	for _, f := range Addresses.returned {
		n -= f.Size
	}
	return n
}

// takeNewAddresses makes the heaps of a test take unused addresses, from the newest region.
func takeNewAddresses(t *testing.T) {
	others := Addresses.returned
	Addresses.returned = nil
	t.Cleanup(func() { Addresses.returned = append(Addresses.returned, others...) })
}

// A segment that cannot be set up is returned.
func TestRefusedSegmentsLoseNoAddresses(t *testing.T) {
	takeNewAddresses(t)
	used := newHeap(t, Options{})
	fill(alloc(t, used, 3<<20), 1)
	restore := refuse(vm.OpRevoke)
	used.Close() // its memory is charged to the next owner of its addresses
	restore()
	before := held()
	h := newHeap(t, Options{MaxBytes: 1 << 20})
	if calls := callsOf(func() { h.Alloc(900<<10, 8, false) }); calls[vm.OpRevoke] == 0 {
		t.Error("the limit did not refuse 3 MiB")
	}
	h.check(t)
	h.Close()
	if after := held(); after > before {
		t.Errorf("the limit refused, and %d bytes of addresses are lost", after-before)
	}

	if vm.HolesReadZero {
		h = newHeap(t, Options{})
		commits := 0
		restore = vm.SetFault(func(op vm.Op) error {
			if op == vm.OpCommit {
				if commits++; commits > 1 { // the first is the span's
					return syscall.ENOMEM
				}
			}
			return nil
		})
		_, err := h.Alloc(100000, 8, false)
		restore()
		if err == nil || commits < 2 {
			t.Fatalf("%d commits, %v", commits, err)
		}
		h.check(t)
		h.Close()
		if after := held(); after > before {
			t.Errorf("the system refused, and %d bytes of addresses are lost", after-before)
		}
	}
}

func TestRefusedGrowthTakesNoAddresses(t *testing.T) {
	takeNewAddresses(t)
	h := newHeap(t, Options{MaxBytes: 8 << 20})
	b := alloc(t, h, 3<<20)
	before := held()
	if _, ok := h.Resize(b, 64<<20); ok {
		t.Error("64 MiB with a limit of 8")
	}
	if after := held(); after > before {
		t.Errorf("%d bytes of addresses more", after-before)
	}
}

func TestRefusedRequestsTakeNoAddresses(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 8 << 20})
	b := alloc(t, h, 3<<20)
	before := h.pages.total
	for i := range 20 {
		h.Alloc((i+1)<<24, 8, false)
		h.Resize(b, (i+1)<<24)
	}
	if h.pages.total > before+SegmentBytes {
		t.Errorf("%d bytes of addresses more", h.pages.total-before)
	}
	h.Free(b)
}

func TestSegmentsAreNamedAndAdvised(t *testing.T) {
	for _, huge := range []bool{false, true} {
		h := newHeap(t, Options{HugePages: huge})
		calls := callsOf(func() { alloc(t, h, 100) })
		if calls[vm.OpName] != 1 || calls[vm.OpAdvise] > 0 != huge {
			t.Errorf("huge pages %v: %d names, %d advices", huge, calls[vm.OpName], calls[vm.OpAdvise])
		}
	}
}

// Each segment doubles the heap's addresses, since finding a segment and its tables cost the
// same at any size.
func TestSegmentsGrowWithTheHeap(t *testing.T) {
	h := newHeap(t, Options{})
	for range 60 {
		alloc(t, h, 1<<20)
	}
	if n := len(h.pages.segments); n > 5 {
		t.Errorf("60 MiB are in %d segments", n)
	}
}
