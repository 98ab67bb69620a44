// Page map: the numbers of heaps.

package heap

import (
	"strings"
	"testing"
)

// There may be more heaps than numbers for page page words. Heaps without a number work too, and
// detect the blocks of other heaps.
func TestManyHeaps(t *testing.T) {
	var heaps []*Heap
	for range 1<<8 + 10 {
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
