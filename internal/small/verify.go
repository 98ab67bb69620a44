// Verify: a check of the invariants of the small blocks of a heap at rest.
//
// Only tests call it, so the linker leaves it out of other programs. Each function verifies one
// thing and returns an error that names the violated invariant.

package small

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/pages"
)

// Verification is the state of a check. No other goroutine uses the heap until End returns.
type Verification struct {
	h       *Heap
	object  func(size uintptr)                // called with the size of each object of metadata
	watched func(addr uintptr) (size uintptr) // returns the size of a watched block
	classes [NumClasses]classTally
}

type classTally struct{ out, holes, spans, partial, empty int }

// Verify begins a check. The caller passes each block run to Run, and then calls End. Verify and
// Run call object with the size of each object of metadata, except for the caches and their
// magazines. watched returns the size of the watched block at an address, or 0.
func (h *Heap) Verify(object func(size uintptr), watched func(addr uintptr) (size uintptr)) *Verification {
	v := &Verification{h: h, object: object, watched: watched}
	for i := range h.central {
		class := &classes[i]
		for at := h.central[i].limbo; at != 0; at = uintptr(*pages.Bitmap(at + class.statusesBytes()).Word(0)) {
			object(class.metadataBytes())
		}
		stocked, empty := h.magazines(uint8(i))
		for range stocked + empty {
			object(class.magazineBytes())
		}
	}
	return v
}

// magazines returns the numbers of magazines in the depots of the class, with blocks and without.
func (h *Heap) magazines(class uint8) (stocked, empty int) {
	for _, x := range h.homes.all {
		stocked += int(x.depots[class].stocked.n)
		empty += int(x.depots[class].empty.n)
	}
	return stocked, empty
}

// Verify verifies the magazines of c, and calls object with the size of each.
func (c *Magazines) Verify(object func(size uintptr)) error {
	for i := range classes {
		class := uint8(i)
		loaded, spare := c.loaded(class), c.spare(class)
		if loaded == nil && (c.tops[i] != sentinelTop() || spare != nil) || spare == nil && c.spareTops[i] != sentinelTop() {
			return fmt.Errorf("class %d: magazines %p and %p with tops %#x and %#x", i, loaded, spare, c.tops[i], c.spareTops[i])
		}
		for _, m := range []*magazine{loaded, spare} {
			if m == nil {
				continue
			}
			object(classes[i].magazineBytes())
			if m.n > classes[i].batch || m.sentinel != sentinel.entry {
				return fmt.Errorf("class %d: magazine %+v for %d blocks", i, *m, classes[i].batch)
			}
		}
	}
	return nil
}

// Run verifies a block run, its blocks and its page words.
func (v *Verification) Run(s *Span) error {
	n, class := &v.classes[s.class], &classes[s.class]
	n.out += int(s.out)
	n.holes += s.holeBytes()
	n.spans++
	partial := uintptr(s.out) < class.blocks
	if partial {
		n.partial++
	}
	if s.out == 0 {
		n.empty++
	}
	v.object(class.metadataBytes())
	if err := v.h.verifySpan(s, s.class); err != nil {
		return err
	}
	if on := v.h.central[s.class].partial(int(s.home)).Contains(&s.Span); on != partial {
		return fmt.Errorf("span %#x with %d of %d blocks out: on the list: %v", s.Base, s.out, class.blocks, on)
	}
	for i := range class.blocks {
		if err := v.block(s, i); err != nil {
			return err
		}
	}
	return nil
}

// block verifies block i of s.
func (v *Verification) block(s *Span, i uintptr) error {
	e := s.entryOf(i)
	st := *StatusAt(e.Status)
	size := uintptr(st)
	if st == Watched {
		size = v.watched(e.Addr)
	}
	if st < FreeZero && (s.free.Has(i) || size == 0 || size > s.Size) {
		return fmt.Errorf("span %#x block %d: free %v, status %d, %d bytes", s.Base, i, s.free.Has(i), st, size)
	}
	want := e.Status
	if !pages.Addresses.First.Holds(e.Addr) || v.h.mapID>>mapHeapShift == noMapID {
		want = 0
	}
	begin, inside := lookUp(e.Addr, v.h.mapID), lookUp(e.Addr+s.Size/2, v.h.mapID)
	if begin != want || inside != 0 {
		return fmt.Errorf("span %#x block %d: statuses at %#x and %#x, want %#x", s.Base, i, begin, inside, want)
	}
	return nil
}

// lookUp finds the block that begins at addr by its page word. It returns the address of its
// status, or 0 if the page map has no block of the heap there.
func lookUp(addr uintptr, mapID uint64) uintptr {
	if word, off, ok := PageWord(addr, mapID); ok {
		if at, _, ok := StatusIn(word, off); ok {
			return at
		}
	}
	return 0
}

// verifySpan verifies a span of the class.
func (h *Heap) verifySpan(s *Span, class uint8) error {
	blocks := classes[class].blocks
	free := s.free.Count(0, blocks)
	if s.Kind != pages.BlockRun || s.class != class || s.Owner != h.pages.ID || free+uintptr(s.out) != blocks || SpanAt(s.Base) != s {
		return fmt.Errorf("class %d: %d of %d blocks are free in span %+v", class, free, blocks, s)
	}
	return nil
}

// End verifies the centrals and the depots, after all runs.
func (v *Verification) End() error {
	h, extra := v.h, int64(0)
	for i := range h.central {
		c := &h.central[i]
		if err := c.verify(h); err != nil {
			return err
		}
		if got, want := (classTally{c.out, c.holes, c.spans, c.partials(), c.emptySpans}), v.classes[i]; got != want {
			return fmt.Errorf("class %d counts %+v, and has %+v", i, got, want)
		}
		blocks := 0
		for _, x := range h.homes.all {
			d := &x.depots[i]
			if err := d.verify(h); err != nil {
				return err
			}
			blocks += int(d.stocked.blocks)
			extra += d.extra(h)
		}
		if blocks > c.out {
			return fmt.Errorf("class %d: %d blocks in depots of %d out", i, blocks, c.out)
		}
	}
	if got := h.extra.Load(); got != extra {
		return fmt.Errorf("depots have %d extra bytes, and the heap counts %d", extra, got)
	}
	return nil
}

// verify verifies the partial spans of a class.
func (c *central) verify(h *Heap) error {
	if c.emptySpans > c.spans {
		return fmt.Errorf("class %d: %d of %d spans empty", c.class, c.emptySpans, c.spans)
	}
	for home, x := range c.homes.all {
		l := &x.partial[c.class]
		if l.Length() != int(l.n.Load()) {
			return fmt.Errorf("class %d: %d spans at home in %d, counted %d", c.class, l.Length(), home, l.n.Load())
		}
		for at := l.Head; at != 0; {
			s := spanPtr(at)
			if err := h.verifySpan(s, c.class); err != nil {
				return err
			}
			if uintptr(s.out) == classes[c.class].blocks || int(s.home) != home {
				return fmt.Errorf("class %d: span %#x with %d of %d blocks out and home %d is on the list of %d", c.class, s.Base, s.out, classes[c.class].blocks, s.home, home)
			}
			at = s.Next
		}
	}
	return nil
}

// partials returns the number of partial spans.
func (c *central) partials() (n int) {
	for _, x := range c.homes.all {
		n += x.partial[c.class].Length()
	}
	return n
}

func (d *depot) verify(h *Heap) error {
	n, blocks := int32(0), int32(0)
	for at := d.stocked.head; at != 0; at = magazineAt(at).next {
		n++
		blocks += int32(magazineAt(at).n)
	}
	if n != d.stocked.n || n != d.length.Load() || blocks != d.stocked.blocks {
		return fmt.Errorf("class %d: %d blocks in %d magazines, counted %+v of length %d", d.class, blocks, n, d.stocked, d.length.Load())
	}
	if most := h.mostStocked(d.class); int(d.stocked.n) > most || int(d.empty.n) > d.mostEmpty(h) {
		return fmt.Errorf("class %d: %d magazines with blocks and %d without, want %d at most", d.class, d.stocked.n, d.empty.n, most)
	}
	return nil
}
