// Caches: two magazines of each class.

package small

import (
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/test/await"
)

// Around the end of a magazine a cache needs its depot once a batch at most.
func TestSpareMagazineSparesTheDepot(t *testing.T) {
	p := newProcessor(t)
	blocks := make([][]byte, 2*classes[class64].batch) // as many as fit
	alloc := func(from, to int) {
		for i := range blocks[from:to] {
			blocks[from+i] = p.alloc(t, 64)
		}
	}
	free := func(from, to int) {
		for _, b := range blocks[from:to] {
			p.free(b)
		}
	}
	alloc(0, len(blocks))
	free(0, len(blocks))
	was := p.m.Holding(class64, 0)
	for n := len(blocks) / 2; n < len(blocks)/2+3; n++ {
		alloc(0, n)
		free(n-3, n)
		alloc(n-3, len(blocks))
		free(0, len(blocks))
		p.m.check(t)
	}
	if now := p.m.Holding(class64, 0); now.Allocs != was.Allocs || now.Frees != was.Frees {
		t.Errorf("%d allocs and %d frees went to the depot", now.Allocs-was.Allocs, now.Frees-was.Frees)
	}
}

// Count may read a top and an end of two magazines, while a cache swaps them. It counts at most the
// blocks of a full magazine.
func TestCountDuringASwap(t *testing.T) {
	for _, top := range []uintptr{1 << 20, 3 << 20} {
		var c Magazines
		c.Clear()
		c.tops[class64], c.ends[class64] = top, 2<<20
		c.spareTops[class64], c.spareEnds[class64] = top, 2<<20
		var n [NumClasses]int
		c.Count(&n)
		if most := 2 * int(classes[class64].batch); n[class64] < 0 || n[class64] > most {
			t.Errorf("%d blocks are cached, want %d at most", n[class64], most)
		}
	}
}

// The count of a cache in use may be too high. No more blocks are cached than are out of their
// spans.
func TestNoMoreBlocksAreCachedThanAreOut(t *testing.T) {
	p := newProcessor(t)
	p.free(p.alloc(t, 64))
	c := &p.m.central[class64]
	out := c.out
	if n := p.m.Holding(class64, out+10); out < 2 || n.Live != 0 || n.Cached != out {
		t.Errorf("%d blocks are out: %+v", out, n)
	}
}

// A span is freed between the look at its run and the one at its blocks. While blocks are visited,
// the lock of their class is held.
func TestEachBlockOfASpan(t *testing.T) {
	p := newProcessor(t)
	b := p.alloc(t, 64)
	addr := AddrOf(b) &^ (pages.PageBytes - 1)
	c := &p.m.central[class64]
	visits, done := 0, make(chan bool, 1)
	p.m.EachBlock(class64, addr, func(block, size uintptr, watched bool) {
		if visits++; block != AddrOf(b) || size != 64 || watched {
			t.Errorf("block %#x of %d bytes, want %#x", block, size, AddrOf(b))
		}
		go func() { p.m.Holding(class64, 0); done <- true }()
		if !await.Lock("(*Heap).Holding", done) {
			t.Error("the lock is not held")
		}
	})
	if visits != 1 {
		t.Fatalf("%d visits", visits)
	}
	<-done
	p.free(b)
	p.m.trim()
	none := func(block, size uintptr, _ bool) { t.Errorf("block %#x of %d bytes", block, size) }
	p.m.EachBlock(class64, addr, none)
	for range 100 {
		p.alloc(t, 200) // another class has the pages
	}
	if c.spans != 0 || SpanAt(addr).Kind != pages.BlockRun {
		t.Fatal("the pages are not another class's")
	}
	p.m.EachBlock(class64, addr, none)
}
