// Page map: entries of open heaps and of free pages.

package heap

import (
	"strings"
	"testing"
)

func TestFreePagesHaveNoTags(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	if st := lookUp(addrOf(b), h.mapID); st == 0 {
		t.Skip("this heap's blocks have no entries")
	}
	h.Free(b)
	h.Trim()
	if st := lookUp(addrOf(b), h.mapID); st != 0 {
		t.Error("the tag leads to the states of a span that is no more")
	}
}

func TestOpenHeapsHaveNumbersOfTheirOwn(t *testing.T) {
	seen := map[uint64]bool{}
	for range 3 {
		var heaps []*Heap
		for range 10 {
			h := newHeap(t, Options{})
			if seen[h.mapID] {
				t.Fatalf("two open heaps have the number %#x", h.mapID)
			}
			seen[h.mapID] = true
			heaps = append(heaps, h)
		}
		for _, i := range []int{5, 0, 9} {
			heaps[i].Close()
			delete(seen, heaps[i].mapID)
		}
	}
}

// More heaps than page map entries have numbers for: those beyond work as well, and find
// what is another's.
func TestManyHeaps(t *testing.T) {
	var heaps []*Heap
	for range noMapID + 10 {
		heaps = append(heaps, newHeap(t, Options{}))
	}
	for i, h := range heaps {
		a, b := alloc(t, h, 64), alloc(t, h, 64)
		fill(a, byte(i))
		h.Free(b)
		if got := panicOf(func() { heaps[(i+1)%len(heaps)].Free(a) }); !strings.Contains(got, "another heap") {
			t.Fatalf("heap %d: panic %q", i, got)
		}
		if got := panicOf(func() { h.Free(b) }); !strings.Contains(got, "freed before") {
			t.Fatalf("heap %d: panic %q", i, got)
		}
		if !allSet(a, byte(i)) {
			t.Fatalf("heap %d: a block changed", i)
		}
		h.Free(a)
	}
}
