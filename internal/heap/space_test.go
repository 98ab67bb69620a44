// Space: the addresses of all heaps.

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// newSpace returns a space with one region of n segments.
func newSpace(t *testing.T, n uintptr) *space {
	t.Helper()
	s := new(space)
	if err := s.first.reserve(n*segmentBytes, true); err != nil {
		t.Fatal(err)
	}
	return s
}

func take(t *testing.T, s *space, segments uintptr) uintptr {
	t.Helper()
	addr, err := s.take(segments*segmentBytes, 1)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestNobodyGrowsOutOfARegion(t *testing.T) {
	s := newSpace(t, 2)
	addr := take(t, s, 1)
	if err := s.takeAt(addr+segmentBytes, segmentBytes, 1); err != nil {
		t.Errorf("the last segment: %v", err)
	}
	if err := s.takeAt(addr+2*segmentBytes, segmentBytes, 1); err != errTaken {
		t.Errorf("beyond the region: %v", err)
	}
}

func TestReturnedSegmentsAreJoinedOnBothSides(t *testing.T) {
	for _, order := range [][3]uintptr{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}} {
		s := newSpace(t, 3)
		first := take(t, s, 3)
		for _, i := range order {
			s.give(first+i*segmentBytes, segmentBytes)
		}
		if len(s.returned) != 1 || s.returned[0] != (addrRange{first, 3 * segmentBytes}) {
			t.Errorf("returned in the order %v: %v", order, s.returned)
		}
	}
}

func TestSmallestReturnedSegmentsAreTaken(t *testing.T) {
	s := newSpace(t, 6)
	first := take(t, s, 6)
	s.give(first, 3*segmentBytes)
	s.give(first+4*segmentBytes, segmentBytes)
	if got := take(t, s, 1); got != first+4*segmentBytes {
		t.Error("three segments were broken for one")
	}
	if got := take(t, s, 3); got != first {
		t.Error("three segments are not together any more")
	}
}

// What a heap left in the tables would speak for the next one's blocks.
func TestTablesOfAReturnedSegmentAreEmpty(t *testing.T) {
	s := newSpace(t, 1)
	addr := take(t, s, 1)
	r := &s.first
	for off := uintptr(0); off < segmentBytes; off += pageBytes {
		*r.page(addr + off) = &pspan{}
		*r.mapEntry(off) = ^uint64(0)
	}
	r.dirty.setRange(0, segmentBytes/pageBytes)
	s.give(addr, segmentBytes)
	for off := uintptr(0); off < segmentBytes; off += pageBytes {
		if *r.page(addr + off) != nil || *r.mapEntry(off) != 0 {
			t.Fatalf("page %d: word %p, tag %#x", off/pageBytes, *r.page(addr + off), *r.mapEntry(off))
		}
	}
	if n := r.dirty.count(0, segmentBytes/pageBytes); n != 0 || *r.owner(addr) != 0 {
		t.Errorf("%d pages hold memory, and the owner is %d", n, *r.owner(addr))
	}
}

// A region is one reservation: where a part of several were refused, the others
// would be taken for good.
func TestRegionIsOneReservation(t *testing.T) {
	reserved := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpReserve {
			reserved++
		}
		return nil
	})
	defer restore()
	for _, withEntries := range []bool{false, true} {
		reserved = 0
		if err := new(region).reserve(segmentBytes, withEntries); err != nil || reserved != 1 {
			t.Errorf("%d reservations, %v", reserved, err)
		}
	}
}
