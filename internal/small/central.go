// Central: the central free list of a class. It has the class's spans, behind the depots.
//
//	depot <-- blocks --> spans <-- runs --> page heap
//
// fill takes the blocks of a span in the order of their addresses, so a magazine holds neighbours.
// A full span to which a block returns goes to the front of the list of partial spans. So nearly
// full spans are used first, and the others can become empty.

package small

import (
	"math/bits"
	"slices"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
)

// central has the spans of one class of one heap. mu guards its fields, its spans and the bits of
// their blocks.
//
// Invariants:
//   - a span is on partial if and only if a block is free in it
//   - out == the sum of Span.out over the spans
type central struct {
	mu       lockrank.Mutex[lockrank.Central]
	class    uint8
	used     bool // blocks have moved since punch began
	rested   bool // the last punch was complete, and no block has moved since
	partial  pages.List
	spans    int
	empty    int  // spans in which all blocks are free
	released uint // spans freed so far
	out      int  // blocks not free in their spans: live or in a magazine
	holes    int  // bytes of free blocks given back to the system
	purged   uint64

	limbo uintptr // list of the statuses of freed spans: see limbo.go
}

// lock locks c and notes that blocks are about to move.
func (c *central) lock() {
	c.mu.Lock()
	c.used, c.rested = true, false
}

// fill puts a batch of free blocks into an empty magazine. It puts fewer if the partial spans have
// fewer. If they have none, it adds a span.
func (c *central) fill(h *Heap, m *magazine) error {
	c.lock()
	defer c.mu.Unlock()
	all := m.entries(classes[c.class].batch)
	n := 0
	for n < len(all) {
		if c.partial.Head == 0 {
			if n > 0 {
				break
			}
			if err := c.grow(h); err != nil {
				return err
			}
		}
		n += c.carve(spanPtr(c.partial.Head), all[n:])
	}
	// The last entry is used first: make that the lowest address.
	slices.Reverse(all[:n])
	m.n = uintptr(n)
	return nil
}

// carveOne returns a free block of a partial span, or the zero entry if there is none.
// AllocFromDepot calls it if it could not get a magazine.
func (c *central) carveOne() Entry {
	c.lock()
	defer c.mu.Unlock()
	var out [1]Entry
	for c.partial.Head != 0 {
		if c.carve(spanPtr(c.partial.Head), out[:]) == 1 {
			break
		}
	}
	return out[0]
}

// carve takes free blocks from s into out, in the order of their addresses, and returns their
// number. It drops a block whose bit says free and whose status says live. That block was freed
// twice and then allocated from its second entry, so it stays with its owner.
func (c *central) carve(s *Span, out []Entry) (n int) {
	if s.out == 0 {
		c.empty--
	}
	carved := 0
	words := classes[c.class].freeWords()
	for w := uintptr(0); w < words && n < len(out); w++ {
		word := s.free.Word(w)
		for *word != 0 && n < len(out) {
			i := w*64 + uintptr(bits.TrailingZeros64(*word))
			*word &= *word - 1
			carved++
			if e := s.entryOf(i); *StatusAt(e.Status) >= FreeZero {
				out[n] = e
				n++
			}
		}
	}
	s.out += uint32(carved)
	c.out += carved
	c.holes -= int(s.holes)
	s.holes, s.punched = 0, false
	if s.out == uint32(classes[c.class].blocks) {
		c.partial.Remove(&s.Span)
	}
	return n
}

// restore returns blocks to their spans.
func (c *central) restore(h *Heap, in []Entry) {
	c.lock()
	defer c.mu.Unlock()
	c.restoreAll(h, in)
}

// restoreAll is restore with mu held. It drops entries whose span was freed.
func (c *central) restoreAll(h *Heap, in []Entry) {
	for len(in) > 0 {
		s := SpanAt(in[0].Addr)
		n := 1
		for s != nil && n < len(in) && in[n].Addr-s.Base < s.Bytes() {
			n++
		}
		if s != nil && s.Kind == pages.BlockRun && s.class == c.class {
			c.restoreTo(h, s, in[:n])
		}
		in = in[n:]
	}
}

// restoreTo returns blocks to s, their span. If s becomes empty, and another span of the class is
// empty too, it frees s. It skips a block that was freed twice and is live again or already in s.
func (c *central) restoreTo(h *Heap, s *Span, in []Entry) {
	blocks := classes[c.class].blocks
	returned := uint32(0)
	for _, e := range in {
		i := (e.Status - s.statuses) / statusBytes
		if i >= blocks || s.entryOf(i).Addr != e.Addr || *StatusAt(e.Status) < FreeZero {
			continue
		}
		word, bit := s.free.Word(i/64), uint64(1)<<(i%64)
		if *word&bit == 0 {
			*word |= bit
			returned++
		}
	}
	if returned == 0 {
		return
	}
	if s.out == uint32(blocks) {
		c.partial.Push(&s.Span)
	}
	s.out -= returned
	s.punched = false
	c.out -= int(returned)
	if s.out > 0 {
		return
	}
	if c.empty++; c.empty > 1 {
		c.release(h, s)
	} else {
		c.partial.Remove(&s.Span)
		c.partial.PushBack(&s.Span)
	}
}

// shrink frees the empty spans. mu is held.
func (c *central) shrink(h *Heap) {
	for at := c.partial.Head; at != 0 && c.empty > 0; {
		s := spanPtr(at)
		at = s.Next
		if s.out == 0 {
			c.release(h, s)
		}
	}
}

// grow adds a span.
func (c *central) grow(h *Heap) error {
	class := &classes[c.class]
	statuses, err := h.pages.AllocObject(class.bitsBytes())
	if err != nil {
		return err
	}
	run, zero, err := h.pages.AllocRun(class.pages, pages.PageBytes)
	if err != nil {
		h.pages.FreeObject(statuses, class.bitsBytes())
		return err
	}
	s := SpanOf(run)
	s.class, s.Size = c.class, class.size
	s.statuses, s.free = statuses, pages.Bitmap(statuses+class.statusesBytes())
	s.free.SetRange(0, class.blocks)
	fresh := uint16(FreeDirty)
	if zero {
		fresh = FreeZero
	}
	for i := range class.blocks {
		*StatusAt(s.statusOf(i)) = fresh
	}
	*StatusAt(s.statusOf(class.blocks)) = FreeDirty
	h.pages.PublishBlocks(run, s.pageWord(h.mapID), 1<<MapPageShift)
	c.partial.Push(&s.Span)
	c.spans++
	c.empty++
	return nil
}

// release frees an empty span, unless markLiveAgain finds a live block in it.
func (c *central) release(h *Heap, s *Span) {
	if c.markLiveAgain(s); s.out > 0 {
		return
	}
	c.empty--
	c.partial.Remove(&s.Span)
	c.released++
	c.spans--
	c.holes -= int(s.holes)
	c.bury(h, s)
	h.pages.FreeRun(&s.Span)
}

// close drops the spans without freeing them. The page heap frees their memory.
func (c *central) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partial = pages.List{}
	c.spans, c.empty, c.out, c.holes, c.limbo = 0, 0, 0, 0, 0
}
