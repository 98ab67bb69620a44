// Blocks: their size, alignment, zeros and contents.

package alloctest

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/poison"
)

// checkSizes: blocks have the size asked for and never overlap.
func checkSizes(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for range 2 { // the second round reuses memory
		for _, c := range sizes {
			for range some(4, c.size) {
				if b := must(t, a, o, c.size, 1); b != nil {
					s.add(b)
				}
			}
			s.checkEdges(fmt.Sprintf("after Alloc of %d bytes (%s)", c.size, c.why))
		}
		s.clear("at the end")
	}
}

// checkAlignments: blocks are at multiples of any power of two.
func checkAlignments(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	aligns := []struct {
		align int
		why   string
	}{
		{1, "none"}, {2, "uint16"}, {4, "uint32"}, {8, "a word"},
		{16, "the usual smallest class"}, {32, "AVX"}, {64, "a cache line, AVX-512"},
		{128, "two cache lines"}, {512, "a disk sector"}, {1024, "above most headers"},
		{4096, "a page"}, {8192, "two pages"}, {64 << 10, "the engine's page"},
		{1 << 20, "larger than most blocks"}, {2 << 20, "a huge page"}, {4 << 20, "more than that"},
	}
	for _, c := range aligns {
		for _, size := range []int{1, 8, 24, 100, 640, 4097, 40000, 1<<20 + 1} {
			for range some(3, size) {
				if b := must(t, a, o, size, c.align); b != nil {
					s.add(b)
				}
			}
		}
		s.checkEdges(fmt.Sprintf("after blocks aligned to %d (%s)", c.align, c.why))
	}
	s.clear("at the end")
}

// checkZeroed: Zeroed returns zeros, in reused memory too.
func checkZeroed(t testing.TB, a freehold.Allocator, o Options) {
	for _, c := range sizes {
		if c.size > o.MaxSize {
			continue
		}
		for _, align := range []int{1, min(64, o.MaxAlign)} {
			dirty := make([][]byte, some(8, c.size))
			clean := make([][]byte, len(dirty))
			for i := range dirty {
				dirty[i] = must(t, a, o, c.size, align)
				poison.FillBytes(dirty[i], 0xFF)
			}
			for _, b := range dirty {
				a.Free(b)
			}
			for i := range clean {
				b, err := a.Zeroed(c.size, align)
				if err != nil {
					t.Fatalf("Zeroed(%d, %d): %v", c.size, align, err)
				}
				if fault := blockFault(b, c.size, align); fault != "" {
					t.Fatalf("Zeroed(%d, %d): %s", c.size, align, fault)
				}
				if j := poison.Other(b, 0); j >= 0 {
					t.Fatalf("Zeroed(%d, %d): byte %d is %#x (%s)", c.size, align, j, b[j], c.why)
				}
				poison.FillBytes(b, 0xFF)
				clean[i] = b
			}
			for _, b := range clean {
				a.Free(b)
			}
		}
	}
}

// checkAppend: append to a block copies it to the Go heap and leaves the memory
// behind it unchanged.
func checkAppend(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for _, size := range []int{1, 8, 16, 24, 100, 4096} {
		if size > o.MaxSize {
			continue
		}
		for range 16 {
			s.add(must(t, a, o, size, 1))
		}
	}
	for _, h := range s.blocks {
		_ = append(h.b, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF)
	}
	s.clear("after append to each block")
}

// checkResize: contents survive, neighbours are unchanged, and a Resize that
// reports false changes nothing.
func checkResize(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for _, align := range []int{1, 16, 4096} {
		if align > o.MaxAlign {
			continue
		}
		for _, from := range sizes {
			for _, to := range sizes {
				smaller, larger := min(from.size, to.size), max(from.size, to.size)
				if larger > o.MaxSize {
					continue
				}
				// For large sizes, one alignment and a few small other sizes are
				// enough.
				if larger > large && (align != 16 || smaller > 1 && smaller < 4096) {
					continue
				}
				s.add(must(t, a, o, 24, 1))
				b := must(t, a, o, from.size, align)
				s.add(must(t, a, o, 24, 1))
				p := newPattern()
				p.fill(b)
				kept := from.size
				if r, ok := a.Resize(b, to.size); ok {
					if fault := blockFault(r, to.size, align); fault != "" {
						t.Fatalf("Resize of %d bytes to %d: %s", from.size, to.size, fault)
					}
					b, kept = r, min(from.size, to.size)
				}
				if i := p.damage(b[:kept], 0); i >= 0 {
					t.Fatalf("Resize of %d bytes to %d: byte %d has changed", from.size, to.size, i)
				}
				a.Free(b)
				s.clear(fmt.Sprintf("after Resize of %d bytes to %d", from.size, to.size))
			}
		}
	}
}
