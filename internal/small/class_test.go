// Classes: a size for every request.

package small

import (
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

func TestClassesServeEverySizeAndAlignment(t *testing.T) {
	for align := uintptr(1); align <= MaxAlign; align *= 2 {
		for size := uintptr(1); size <= MaxSize; size++ {
			rounded := vm.RoundUp(size, align)
			if rounded > MaxSize {
				continue
			}
			c := &classes[classOf[(rounded+7)/8]]
			if c.size < size || c.size%align != 0 {
				t.Fatalf("size %d at a multiple of %d: class of %d", size, align, c.size)
			}
			if waste := c.size - size; align <= 8 && size > 128 && waste*8 >= size {
				t.Fatalf("size %d: class of %d wastes more than an eighth", size, c.size)
			}
		}
	}
}

func TestClassTable(t *testing.T) {
	tests := []struct{ size, want uintptr }{
		{1, 8}, {8, 8}, {9, 16}, // the smallest
		{24, 24}, {25, 32}, {33, 48}, // where spacing goes from 8 to 16
		{128, 128}, {129, 144}, // where eight per doubling begins
		{256, 256}, {257, 288},
		{1024, 1024}, {1025, 1152},
		{30720, 30720}, {30721, 32768}, {32768, 32768}, // the largest
	}
	for _, tt := range tests {
		if got := classes[classOf[(tt.size+7)/8]].size; got != tt.want {
			t.Errorf("size %d: class of %d, want %d", tt.size, got, tt.want)
		}
	}
	for i := 1; i < NumClasses; i++ {
		c := &classes[i]
		if c.blocks > maxBlocks || c.blocks*c.size > c.pages*pages.PageBytes || c.pages*pages.PageBytes-c.blocks*c.size >= c.size {
			t.Errorf("class %+v: the blocks do not fill the span", *c)
		}
		if c.blocks < 4 || (c.pages*pages.PageBytes-c.blocks*c.size)*32 > c.pages*pages.PageBytes {
			t.Errorf("class %+v: few blocks, or more than a 32nd of waste", *c)
		}
		if c.metadataBytes() > pages.MaxObject || c.magazineBytes() > pages.MaxObject || c.pages > MapPageMask>>MapPageShift {
			t.Errorf("class %+v: bookkeeping larger than an object", *c)
		}
		if n := c.pages * pages.PageBytes / (4 << 10); n > 32 {
			t.Errorf("class %+v: %d system pages do not fit into Span.holes", *c, n)
		}
		// The reciprocal divides exactly, and knows what divides exactly.
		for off := range c.pages * pages.PageBytes {
			product := uint64(off) * uint64(reciprocals[i])
			if got := uintptr(product >> 32); got != off/c.size {
				t.Fatalf("class of %d: offset %d has index %d", c.size, off, got)
			}
			if got := uint32(product) < reciprocals[i]; got != (off%c.size == 0) {
				t.Fatalf("class of %d: offset %d is a block's: %v", c.size, off, got)
			}
		}
	}
}
