package heap_test

import (
	"testing"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/heap"
)

// A heap at its limit frees the blocks in quarantine before it refuses one, small or large.
func TestLimitEndsTheQuarantine(t *testing.T) {
	if asan.Enabled {
		t.Skip("the sanitizer has a quarantine of its own")
	}
	heap.CheckBlocks(t, 1<<30)
	for _, size := range []int{1000, 100_000} {
		const limit = 8 << 20
		h := heap.NewHeap(t, heap.Options{MaxBytes: limit})
		for freed := 0; freed < 4*limit; freed += size {
			b, err := h.Alloc(size, 8, false)
			if err != nil {
				t.Fatalf("blocks of %d bytes: %v after %d were freed", size, err, freed)
			}
			h.Free(b)
		}
	}
}
