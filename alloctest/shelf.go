// Shelf: the live blocks of a check, and the sizes to try.

package alloctest

import (
	"errors"
	"testing"

	"github.com/freehold-go/freehold"
)

// sizes are block sizes at which allocators change their behaviour.
var sizes = []struct {
	size int
	why  string
}{
	{1, "the smallest block"},
	{2, "less than a word"},
	{7, "just below a word"},
	{8, "a word"},
	{9, "just above a word"},
	{15, "just below the usual smallest class"},
	{16, "the usual smallest class"},
	{17, "just above it"},
	{24, "between powers of two"},
	{63, "just below a cache line"},
	{64, "a cache line"},
	{65, "just above it"},
	{127, "just below where the spacing of classes often widens"},
	{128, "where it does"},
	{129, "just above it"},
	{1000, "no power of two"},
	{4095, "just below a page"},
	{4096, "a page"},
	{4097, "just above it"},
	{32 << 10, "the usual largest class"},
	{32<<10 + 1, "just above it: a large block"},
	{64 << 10, "the engine's page"},
	{64<<10 + 1, "just above it"},
	{1 << 20, "many pages"},
	{2 << 20, "a huge page"},
	{2<<20 + 1, "just above it"},
	{3 << 20, "more than a huge page"},
	{5 << 20, "several huge pages"},
}

// large is the size above which a test holds few blocks and tries few pairs of
// sizes: each block has its own pages, which are slow to fill.
const large = 64 << 10

// some returns the number of blocks of a size that a test holds: n, or two if they
// are large.
func some(n, size int) int {
	if size > large {
		return 2
	}
	return n
}

// must allocates a block and checks it. It returns nil if the allocator refuses a
// block that the options let it refuse.
func must(t testing.TB, a freehold.Allocator, o Options, size, align int) []byte {
	t.Helper()
	b, err := a.Alloc(size, align)
	if err != nil {
		if size <= o.MaxSize && align <= o.MaxAlign || !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatalf("Alloc(%d, %d): %v", size, align, err)
		}
		return nil
	}
	if fault := blockFault(b, size, align); fault != "" {
		t.Fatalf("Alloc(%d, %d): %s", size, align, fault)
	}
	return b
}

// A shelf is a list of live blocks, each with a pattern.
type shelf struct {
	t      testing.TB
	a      freehold.Allocator
	blocks []held
}

// add fills b with a pattern and keeps it.
func (s *shelf) add(b []byte) {
	h := held{b: b, p: newPattern()}
	h.p.fill(b)
	s.blocks = append(s.blocks, h)
}

// checkEdges verifies both ends of every pattern. clear finds damage between them.
func (s *shelf) checkEdges(when string) {
	s.t.Helper()
	for _, h := range s.blocks {
		if i := h.p.damagedEdge(h.b); i >= 0 {
			s.t.Fatalf("%s: byte %d of the block of %d bytes at %#x has changed", when, i, len(h.b), addrOf(h.b))
		}
	}
}

// check verifies every pattern.
func (s *shelf) check(when string) {
	s.t.Helper()
	for _, h := range s.blocks {
		if i := h.p.damage(h.b, 0); i >= 0 {
			s.t.Fatalf("%s: byte %d of the block of %d bytes at %#x has changed", when, i, len(h.b), addrOf(h.b))
		}
	}
}

// clear verifies every pattern and frees the blocks, from both ends inwards, so
// that neither the order of allocation nor its reverse is the only one tested.
func (s *shelf) clear(when string) {
	s.t.Helper()
	s.check(when)
	for i, j := 0, len(s.blocks)-1; i <= j; i, j = i+1, j-1 {
		s.a.Free(s.blocks[i].b)
		if i < j {
			s.a.Free(s.blocks[j].b)
		}
	}
	s.blocks = nil
}
