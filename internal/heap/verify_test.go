// Verify: the invariants of a heap at rest, for the tests.
//
// Each verify looks at one thing and returns what is wrong with it.

package heap

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/pages"
)

// tally is what a walk over the runs of a heap found.
type heapTally struct {
	pages.Tally
	classes [numClasses]classTally
	kept    int // large blocks of which a cache keeps the run
}

type classTally struct{ live, holes, spans, partial, empty int }

// verify verifies the invariants of h and of all that it has. Nobody else uses h.
func (h *Heap) verify() error {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	n, err := &heapTally{}, error(nil)
	kept := 0
	h.caches.Each(func(c *cache) {
		c.eachObject(n.Object)
		if cacheErr := c.verify(); cacheErr != nil {
			err = cacheErr
		}
		if runErr := c.runs.verify(h.pages.ID); runErr != nil {
			err = runErr
		}
		kept += c.runs.count().Blocks
	})
	for i := range h.central {
		h.central[i].eachObject(n.Object)
		full, empty := h.magazines(uint8(i))
		for range full + empty {
			n.Object(classes[i].magazineBytes())
		}
	}
	if err != nil {
		return err
	}
	err = h.pages.Verify(&n.Tally, h.watch.Uncarved(), func(s *pages.Span, dirty uintptr) error {
		return h.verifyRun(spanOf(s), dirty, n)
	})
	if err != nil {
		return err
	}
	if n.kept != kept {
		return fmt.Errorf("%d large blocks have no size, and caches keep %d", n.kept, kept)
	}
	bursting := int64(0)
	for i := range h.central {
		c := &h.central[i]
		if err := c.verify(h); err != nil {
			return err
		}
		if got, want := (classTally{c.out, c.holes, c.spans, c.partial.Length(), c.empty}), n.classes[i]; got != want {
			return fmt.Errorf("class %d counts %+v, and has %+v", i, got, want)
		}
		stocked := 0
		for j := range h.stocks {
			s := &h.stocks[j][i]
			if err := s.verify(h); err != nil {
				return err
			}
			stocked += int(s.full.blocks)
			bursting += s.bursting(h)
		}
		if stocked > c.out {
			return fmt.Errorf("class %d: %d blocks stocked of %d out", i, stocked, c.out)
		}
	}
	if got := h.burst.Load(); got != bursting {
		return fmt.Errorf("stocks have room for %d bytes beyond maxStock, and the heap counts %d", bursting, got)
	}
	return nil
}

// verifyRun verifies a run in use, of which so many pages are dirty.
func (h *Heap) verifyRun(s *span, dirty uintptr, n *heapTally) error {
	switch s.Kind {
	case pages.LargeRun:
		if s.Size == 0 {
			n.kept++
		}
		if size := h.watch.Size(s.Base); s.isLargeWatched() != (size > 0) || size > s.Size {
			return fmt.Errorf("large block %#x of %d bytes: %d bytes watched", s.Base, s.Size, size)
		}
	case pages.BlockRun:
		c, class := &n.classes[s.class], &classes[s.class]
		c.live += int(s.live)
		c.holes += int(s.holes)
		c.spans++
		if free := uintptr(s.live) < class.blocks; free {
			c.partial++
		}
		if s.live == 0 {
			c.empty++
		}
		n.Object(class.bitsBytes())
		return h.verifyBlocks(s, n)
	}
	return nil
}

// verifyBlocks verifies the blocks of a span and their entries in the page map.
func (h *Heap) verifyBlocks(s *span, n *heapTally) error {
	if err := s.verify(h.pages.ID, s.class); err != nil {
		return err
	}
	blocks := classes[s.class].blocks
	if free, on := uintptr(s.live) < blocks, h.central[s.class].partial.Contains(&s.Span); on != free {
		return fmt.Errorf("span %#x with %d of %d blocks live: on the list: %v", s.Base, s.live, blocks, on)
	}
	for i := range blocks {
		at := s.Base + i*s.Size
		st := *statusAt(s.statusOf(i))
		size := uintptr(st)
		if st == watched {
			size = h.watch.Size(at)
		}
		if st < freeZero && (s.free.Has(i) || size == 0 || size > s.Size) {
			return fmt.Errorf("span %#x block %d: free %v, status %d, %d bytes", s.Base, i, s.free.Has(i), st, size)
		}
		want := s.statusOf(i)
		if !pages.Addresses.First.Holds(at) || h.mapID>>mapHeapShift == noMapID {
			want = 0
		}
		begin := lookUp(at, h.mapID)
		inside := lookUp(at+s.Size/2, h.mapID)
		if begin != want || inside != 0 {
			return fmt.Errorf("span %#x block %d: statuses at %#x and %#x, want %#x", s.Base, i, begin, inside, want)
		}
	}
	return nil
}

// verify verifies a span of blocks. The lock of its central is held.
func (s *span) verify(owner uint32, class uint8) error {
	blocks := classes[class].blocks
	free := s.free.Count(0, blocks)
	if s.Kind != pages.BlockRun || s.class != class || s.Owner != owner || free+uintptr(s.live) != blocks || spanAt(s.Base) != s {
		return fmt.Errorf("class %d: %d of %d blocks are free in span %+v", class, free, blocks, *s)
	}
	return nil
}

func (s *stock) verify(h *Heap) error {
	n, blocks := int32(0), int32(0)
	for at := s.full.head; at != 0; at = magazineAt(at).next {
		n++
		blocks += int32(magazineAt(at).n)
	}
	if n != s.full.n || n != s.length.Load() || blocks != s.full.blocks {
		return fmt.Errorf("class %d: %d blocks in %d magazines, counted %+v of length %d", s.class, blocks, n, s.full, s.length.Load())
	}
	if most := h.mostMagazines(s.class); int(s.full.n) > most || int(s.empty.n) > max(most-int(s.full.n), h.groupsPart(maxEmptyMagazines)) {
		return fmt.Errorf("class %d: %d magazines stocked and %d empty ones kept, want %d at most", s.class, s.full.n, s.empty.n, most)
	}
	return nil
}

// verify verifies the spans of a class with free blocks.
func (c *central) verify(h *Heap) error {
	if c.empty > c.spans {
		return fmt.Errorf("class %d: %d of %d spans empty", c.class, c.empty, c.spans)
	}
	for at := c.partial.Head; at != 0; {
		s := spanPtr(at)
		if err := s.verify(h.pages.ID, c.class); err != nil {
			return err
		}
		if uintptr(s.live) == classes[c.class].blocks {
			return fmt.Errorf("class %d: span %#x has no free block and is on the list", c.class, s.Base)
		}
		at = s.Next
	}
	return nil
}

// verify verifies the runs of a cache of owner's.
func (r *runs) verify(owner uint32) error {
	n, held := uintptr(0), uintptr(0)
	for i, at := range r.stacks {
		for ; at != 0; at = pages.SpanPtr(at).Next {
			s := pages.SpanPtr(at)
			if s.Kind != pages.LargeRun || s.Size != 0 || s.Owner != owner || s.Separate != 0 || s.Pages() != uintptr(i)+1 || pages.SpanAt(s.Base) != s {
				return fmt.Errorf("the stack of %d pages has %+v", i+1, *s)
			}
			n, held = n+1, held+s.Pages()
		}
	}
	if n != r.n || held != r.held || held > r.most && (n != 1 || held > r.longest) {
		return fmt.Errorf("%d runs of %d pages are kept, of %d pages at most, or one of %d; counted %d of %d", n, held, r.most, r.longest, r.n, r.held)
	}
	return nil
}

// verify verifies the magazines of a cache.
func (c *cache) verify() error {
	for i := range classes {
		class := uint8(i)
		loaded, spare := c.loaded(class), c.spare(class)
		if loaded == nil && (c.tops[i] != sentinelTop() || spare != nil) || spare == nil && c.spareTops[i] != sentinelTop() {
			return fmt.Errorf("class %d: magazines %p and %p with tops %#x and %#x", i, loaded, spare, c.tops[i], c.spareTops[i])
		}
		for _, m := range []*magazine{loaded, spare} {
			if m != nil && (m.n > classes[i].batch || m.sentinel != sentinel.entry) {
				return fmt.Errorf("class %d: magazine %+v for %d blocks", i, *m, classes[i].batch)
			}
		}
	}
	return nil
}

// eachObject calls f with the size of each object of metadata that c is made of.
func (c *cache) eachObject(f func(size uintptr)) {
	f(cacheBytes)
	for i := range classes {
		if c.loaded(uint8(i)) != nil {
			f(classes[i].magazineBytes())
		}
		if c.spare(uint8(i)) != nil {
			f(classes[i].magazineBytes())
		}
	}
}

// eachObject calls f with the size of each object of metadata that c has, but for
// those of its spans.
func (c *central) eachObject(f func(size uintptr)) {
	class := &classes[c.class]
	for at := c.limbo; at != 0; at = uintptr(*pages.Bitmap(at + class.statusesBytes()).Word(0)) {
		f(class.bitsBytes())
	}
}

// lookUp returns the address of the status of the block that begins at addr, 0 if the page map
// has none of the heap's there.
func lookUp(addr uintptr, mapID uint64) uintptr {
	if word, off, ok := pageWord(addr, mapID); ok {
		if at, _, ok := statusIn(word, off); ok {
			return at
		}
	}
	return 0
}
