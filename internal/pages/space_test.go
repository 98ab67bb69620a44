// Space: the addresses of all heaps.

package pages

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/vm"
)

// newSpace returns a space with one region of n segments.
func newSpace(t *testing.T, n uintptr) *Space {
	t.Helper()
	s := new(Space)
	if err := s.First.reserve(n*SegmentBytes, true); err != nil {
		t.Fatal(err)
	}
	return s
}

func take(t *testing.T, s *Space, segments uintptr) uintptr {
	t.Helper()
	addr, err := s.take(segments*SegmentBytes, 1)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestNobodyGrowsOutOfARegion(t *testing.T) {
	s := newSpace(t, 2)
	addr := take(t, s, 1)
	if err := s.takeAt(addr+SegmentBytes, SegmentBytes, 1); err != nil {
		t.Errorf("the last segment: %v", err)
	}
	if err := s.takeAt(addr+2*SegmentBytes, SegmentBytes, 1); err != errTaken {
		t.Errorf("beyond the region: %v", err)
	}
}

func TestReturnedSegmentsAreJoinedOnBothSides(t *testing.T) {
	for _, order := range [][3]uintptr{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}} {
		s := newSpace(t, 3)
		first := take(t, s, 3)
		for _, i := range order {
			s.give(first+i*SegmentBytes, SegmentBytes)
		}
		if len(s.returned) != 1 || s.returned[0] != (Range{first, 3 * SegmentBytes}) {
			t.Errorf("returned in the order %v: %v", order, s.returned)
		}
	}
}

func TestSmallestReturnedSegmentsAreTaken(t *testing.T) {
	s := newSpace(t, 6)
	first := take(t, s, 6)
	s.give(first, 3*SegmentBytes)
	s.give(first+4*SegmentBytes, SegmentBytes)
	if got := take(t, s, 1); got != first+4*SegmentBytes {
		t.Error("three segments were broken for one")
	}
	if got := take(t, s, 3); got != first {
		t.Error("three segments are not together any more")
	}
}

// The tables of a returned segment are empty: the next heap would read old words as its own.
func TestTablesOfAReturnedSegmentAreEmpty(t *testing.T) {
	s := newSpace(t, 1)
	addr := take(t, s, 1)
	r := &s.First
	for off := uintptr(0); off < SegmentBytes; off += PageBytes {
		*r.page(addr + off) = &Span{}
		*r.PageWord(off) = ^uint64(0)
	}
	r.dirty.SetRange(0, SegmentBytes/PageBytes)
	s.give(addr, SegmentBytes)
	for off := uintptr(0); off < SegmentBytes; off += PageBytes {
		if *r.page(addr + off) != nil || *r.PageWord(off) != 0 {
			t.Fatalf("page %d: word %p, tag %#x", off/PageBytes, *r.page(addr + off), *r.PageWord(off))
		}
	}
	if n := r.dirty.Count(0, SegmentBytes/PageBytes); n != 0 || *r.Owner(addr) != 0 {
		t.Errorf("%d pages hold memory, and the owner is %d", n, *r.Owner(addr))
	}
}

// A region is one reservation. If a part of several were refused, the others would be lost.
func TestRegionIsOneReservation(t *testing.T) {
	reserved := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpReserve {
			reserved++
		}
		return nil
	})
	defer restore()
	for _, withPageWords := range []bool{false, true} {
		reserved = 0
		if err := new(region).reserve(SegmentBytes, withPageWords); err != nil || reserved != 1 {
			t.Errorf("%d reservations, %v", reserved, err)
		}
	}
}

// inShell runs this test alone in a child process, and reports whether this is the child.
func inShell(t *testing.T, shell string) bool {
	if os.Getenv("FREEHOLD_CHILD") != "" {
		return true
	}
	child.Need(t)
	cmd := exec.Command("sh", "-c", shell+` exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "FREEHOLD_CHILD=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// With little address space the first reservation is refused. Smaller regions serve instead.
// None takes more than half of the remaining addresses, and some are left for Go's heap. When
// the regions are used up Alloc returns an error, and it works again later.
func TestLittleAddressSpace(t *testing.T) {
	if vm.GoBacked {
		t.Skip("the memory is Go's own")
	}
	if asan.Enabled {
		t.Skip("the sanitizer's addresses exceed the limit")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell to set the limit with")
	}
	if !inShell(t, "ulimit -v 3000000 &&") {
		return
	}
	h := newHeap(t, Options{})
	if vm.AddressesLeft() == ^uintptr(0) {
		t.Skip("the system does not say how many addresses are left")
	}
	if _, err := h.Alloc(int(vm.AddressesLeft()/4*3), 8, false); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("three quarters of the addresses left: %v", err)
	}
	var before uintptr // addresses left when the newest region was reserved
	defer vm.SetFault(func(op vm.Op) error {
		if op == vm.OpReserve {
			before = vm.AddressesLeft()
		}
		return nil
	})()
	var live [][]byte
	newest := &Addresses.First
	for {
		b, err := h.Alloc(10<<20, 8, false)
		if err != nil {
			if !errors.Is(err, ErrOutOfMemory) {
				t.Fatal(err)
			}
			break
		}
		b[0] = 1
		live = append(live, b)
		// Go may take some of the remaining addresses at any time, so this is not checked at the
		// end.
		if all := Addresses.chained.Load(); all != nil && newest != (*all)[len(*all)-1] {
			newest = (*all)[len(*all)-1]
			if left := before - newest.Size; left < goBytes/2 {
				t.Errorf("%d MiB of addresses left for Go", left>>20)
			}
		}
		if len(live) > 300 {
			t.Fatal("the limit was not set")
		}
	}
	if len(live) < 20 {
		t.Errorf("only %d blocks of 10 MiB in 3 GB of addresses", len(live))
	}
	if newest == &Addresses.First {
		t.Error("no small regions")
	}
	for _, b := range live {
		h.Free(b)
	}
	for range len(live) {
		if b, err := h.Alloc(10<<20, 8, false); err != nil {
			t.Fatal(err)
		} else {
			b[0] = 1
		}
	}
	h.check(t)
}
