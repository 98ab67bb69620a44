// Bins: the choice of a free run for a request.

package pages

import (
	"math/bits"
	"testing"
)

func TestBins(t *testing.T) {
	last := -1
	for n := uintptr(1); n < 1<<20; n++ {
		b := bin(n)
		if b != last && b != last+1 {
			t.Fatalf("%d pages: bin %d after bin %d", n, b, last)
		}
		last = b
	}
	if b := bin(1 << (bits.UintSize - PageShift - 1)); b >= numBins {
		t.Fatalf("the longest run has bin %d of %d", b, numBins)
	}
}

func TestBestRunOfABinIsTaken(t *testing.T) {
	h := newHeap(t, Options{})
	const small, large = 66, 71
	if bin(small) != bin(large) {
		t.Fatal("two bins")
	}
	best, _, first, _ := alloc(t, h, small*PageBytes), alloc(t, h, 40000), alloc(t, h, large*PageBytes), alloc(t, h, 40000)
	h.Free(best)
	h.Free(first) // it is the first in its bin
	if b := alloc(t, h, small*PageBytes); addrOf(b) != addrOf(best) {
		t.Errorf("a run of %d pages was broken for %d", large, small)
	}
}

// Free runs with memory are used before runs that the system would have to back.
func TestRunsThatHoldMemoryAreUsedFirst(t *testing.T) {
	h := newHeap(t, Options{})
	clean, _, dirty, _ := alloc(t, h, 40000), alloc(t, h, 40000), alloc(t, h, 40000), alloc(t, h, 40000)
	h.Free(clean)
	h.Trim()
	h.Free(dirty)
	if b := alloc(t, h, 40000); addrOf(b) != addrOf(dirty) {
		t.Errorf("the run at %#x without memory was taken, and not that at %#x", addrOf(b), addrOf(dirty))
	}
}

// A run with room for the worst case of an alignment is long enough.
func TestAlignmentTakesNoMoreThanItNeeds(t *testing.T) {
	h := newHeap(t, Options{})
	run, _ := alloc(t, h, 6*PageBytes), alloc(t, h, 40000)
	h.Free(run)
	b, err := h.Alloc(5*PageBytes, 2*PageBytes, false)
	if err != nil {
		t.Fatal(err)
	}
	if at := addrOf(b) - addrOf(run); at > PageBytes {
		t.Error("6 free pages did not serve for 5 at a multiple of 2")
	}
}
