//go:build !asan

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
)

// Of a checked block neither the red zone nor what is in quarantine is read.
func TestGoPointersInCheckedBlocks(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	goPointers(t, h) // skips where it cannot tell, before there is a late write
	for _, size := range []int{100, 40000, wordsPart + 100} {
		b, freed := alloc(t, h, size), alloc(t, h, size)
		plant(b, 8, goAddr())
		h.Free(freed)
		plant(freed, 8, goAddr())
		got := goPointers(t, h)
		fill(freed[8:8+pages.WordBytes], poisonByte)
		if len(got) != 1 || got[0].Size != size || got[0].Offset != 8 {
			t.Errorf("size %d: %+v", size, got)
		}
		plant(b, 8, 0)
	}
}
