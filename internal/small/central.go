// Central: the central free list of a class. It has the class's spans, behind the depots.
//
//	depot <-- blocks --> spans <-- runs --> page heap
//
// A span has a home, which takes blocks from it. A home without partial spans adopts the last one
// on another home's list if at least half of that span's blocks are free.
//
// fill takes the blocks of a span in the order of their addresses, so a magazine holds neighbours.
// A full span to which a block returns goes to the front of the list of partial spans. So nearly
// full spans are used first, and the others can become empty.

package small

import (
	"cmp"
	"math/bits"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// central has the spans of one class of one heap. mu guards its fields, its spans and the bits of
// their blocks.
//
// Invariants:
//   - a span is on the list of its home in partial if and only if a block is free in it
//   - out == the sum of Span.out over the spans
type central struct {
	mu         lockrank.Mutex[lockrank.Central]
	class      uint8
	used       bool // blocks have moved since punch began
	rested     bool // the last punch was complete, and no block has moved since
	homes      homes
	spans      int
	emptySpans int // spans in which all blocks are free
	out        int // blocks not free in their spans: live or in a magazine
	holes      int // bytes of free blocks given back to the system
	purged     uint64

	limbo uintptr // list of the statuses of freed spans: see limbo.go
}

// lock locks c and notes that blocks are about to move.
func (c *central) lock() {
	c.mu.Lock()
	c.used, c.rested = true, false
}

// spanList has the partial spans of a home.
type spanList struct {
	pages.List
	n atomic.Int32 // spans, for readers without mu
}

// partial returns the partial spans of a home that was added.
func (c *central) partial(home int) *spanList { return &c.homes[home].Load().partial[c.class] }

// push puts s at the front of its home's list.
func (c *central) push(s *Span) {
	l := c.partial(int(s.home))
	l.Push(&s.Span)
	l.n.Add(1)
}

// remove takes s off its home's list.
func (c *central) remove(s *Span) {
	l := c.partial(int(s.home))
	l.Remove(&s.Span)
	l.n.Add(-1)
}

// fill puts a batch of free blocks into an empty magazine, for a home. It puts fewer if the partial
// spans have fewer. If they have none, it adds a span. The depots of other homes have others
// magazines with blocks: fill puts none if the home should rather take one of these.
func (c *central) fill(h *Heap, m *magazine, home, others int) error {
	c.lock()
	defer c.mu.Unlock()
	all := m.entries(classes[c.class].batch)
	empty := all // the places before the entries: the last entry is used first
	for len(empty) > 0 {
		first := len(empty) == len(all)
		s := c.ownOrAdopted(home)
		if s == nil && first && !c.adds(h, others) {
			if others > 0 {
				return nil
			}
			s = c.foreign(home)
		}
		if s != nil {
			empty = empty[:len(empty)-c.carve(s, empty)]
			continue
		}
		if !first {
			break
		}
		if err := c.grow(h, home); err != nil {
			return err
		}
	}
	if len(empty) > 0 {
		all = all[:copy(all, all[len(empty):])]
	}
	m.n = uintptr(len(all))
	return nil
}

// ownOrAdopted returns the span from which a home takes its next blocks, or nil. If the home has no
// partial span, it adopts one of another home that is half free.
func (c *central) ownOrAdopted(home int) *Span {
	if at := c.partial(home).Head; at != 0 {
		return spanPtr(at)
	}
	for x := range c.homes.others(home) {
		at := x.partial[c.class].Tail
		if at == 0 {
			continue
		}
		if s := spanPtr(at); uintptr(s.out)*2 <= classes[c.class].blocks {
			c.remove(s)
			s.home = uint32(home)
			c.push(s)
			return s
		}
	}
	return nil
}

// foreign returns a partial span of another home, or nil. The span keeps its home.
func (c *central) foreign(home int) *Span {
	for x := range c.homes.others(home) {
		if at := x.partial[c.class].Tail; at != 0 {
			return spanPtr(at)
		}
	}
	return nil
}

// adds reports whether a home without partial spans adds a span before it takes blocks of other
// homes. It does in a heap without a limit if at most a 32nd of the class's blocks are free, in
// spans or in the others magazines of depots. If a home took these last blocks instead, each home
// would soon have blocks of all spans. Then all processors would write to the same cache lines of
// statuses. A heap with a limit saves its memory for other classes.
func (c *central) adds(h *Heap, others int) bool {
	const share = 32
	class := &classes[c.class]
	all := c.spans * int(class.blocks)
	return h.pages.Limit() == 0 && (all-c.out+others*int(class.batch))*share <= all
}

// carveOne returns a free block of a partial span for a home, or the zero entry if there is none.
// AllocFromDepot calls it if it could not get a magazine.
func (c *central) carveOne(home int) Entry {
	c.lock()
	defer c.mu.Unlock()
	var out [1]Entry
	for out[0].Addr == 0 {
		s := cmp.Or(c.ownOrAdopted(home), c.foreign(home))
		if s == nil {
			break
		}
		c.carve(s, out[:])
	}
	return out[0]
}

// carve takes free blocks from s into the end of out, the lowest address last, and returns their
// number. It drops a block whose bit says free and whose status says live. That block was freed
// twice and then allocated from its second entry, so it stays with its owner.
func (c *central) carve(s *Span, out []Entry) (n int) {
	if s.out == 0 {
		c.emptySpans--
	}
	carved, i := 0, uintptr(0)
	words := classes[c.class].freeWords()
	for w := uintptr(0); w < words && n < len(out); w++ {
		word := s.free.Word(w)
		for *word != 0 && n < len(out) {
			i = w*64 + uintptr(bits.TrailingZeros64(*word))
			*word &= *word - 1
			carved++
			if e := s.entryOf(i); *StatusAt(e.Status) >= FreeZero {
				n++
				out[len(out)-n] = e
			}
		}
	}
	s.out += uint32(carved)
	c.out += carved
	if s.holes != 0 { // each block before i was carved, or was out already
		c.setHoles(s, s.holes&^s.systemPages(s.Base, s.Base+(i+1)*s.Size))
	}
	if s.out == uint32(classes[c.class].blocks) {
		c.remove(s)
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
		n := 0
		if s := SpanAt(in[0].Addr); s != nil && s.class == c.class {
			n = c.restoreTo(h, s, in)
		}
		in = in[max(1, n):]
	}
}

// restoreTo returns the first blocks of in to s as long as s is their span. It returns their number.
// If s becomes empty, and another span of the class is empty too, it frees s. It skips a block that
// was freed twice and is live again or already in s.
//
// It reads no field of pages.Span, so it touches one cache line of the span, not two.
func (c *central) restoreTo(h *Heap, s *Span, in []Entry) (n int) {
	blocks, size := classes[c.class].blocks, classes[c.class].size
	returned := uint32(0)
	for ; n < len(in); n++ {
		at := in[n].Status
		i := (at - s.statuses) / statusBytes
		if i >= blocks {
			break
		}
		word, bit := s.free.Word(i/64), uint64(1)<<(i%64)
		if *StatusAt(at) >= FreeZero && *word&bit == 0 && s.base+i*size == in[n].Addr {
			*word |= bit
			returned++
		}
	}
	if returned == 0 {
		return n
	}
	if s.out == uint32(blocks) {
		c.push(s)
	}
	s.out -= returned
	s.punched = false
	c.out -= int(returned)
	if s.out > 0 {
		return n
	}
	if c.emptySpans++; c.emptySpans > 1 {
		c.release(h, s)
	} else {
		l := c.partial(int(s.home))
		l.Remove(&s.Span)
		l.PushBack(&s.Span)
	}
	return n
}

// shrink frees the empty spans. mu is held.
func (c *central) shrink(h *Heap) {
	for _, x := range c.homes.all {
		for at := x.partial[c.class].Head; at != 0 && c.emptySpans > 0; {
			s := spanPtr(at)
			at = s.Next
			if s.out == 0 {
				c.release(h, s)
			}
		}
	}
}

// grow adds a span to a home.
func (c *central) grow(h *Heap, home int) error {
	class := &classes[c.class]
	statuses, err := h.pages.AllocObject(class.metadataBytes())
	if err != nil {
		return err
	}
	run, zero, err := h.pages.AllocRun(class.pages, pages.PageBytes)
	if err != nil {
		h.pages.FreeObject(statuses, class.metadataBytes())
		return err
	}
	s := SpanOf(run)
	s.class, s.Size, s.base = c.class, class.size, s.Base
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
	s.home = uint32(home)
	c.push(s)
	c.spans++
	c.emptySpans++
	return nil
}

// release frees an empty span, unless markLiveAgain finds a live block in it.
func (c *central) release(h *Heap, s *Span) {
	if c.markLiveAgain(s); s.out > 0 {
		return
	}
	c.emptySpans--
	c.remove(s)
	c.spans--
	c.setHoles(s, 0)
	c.bury(h, s)
	h.pages.FreeRun(&s.Span)
}

// markLiveAgain finds the blocks whose bit says free and whose status says live, and clears their
// bits. Each of them was freed twice and then allocated from its second entry. markLiveAgain reads
// no status of a block that is not free in s, because other goroutines write those. c.mu is held.
func (c *central) markLiveAgain(s *Span) {
	// Four statuses at a time: FreeZero and FreeDirty differ in the lowest bit only.
	const allFree = FreeZero | FreeZero<<16 | FreeZero<<32 | FreeZero<<48
	blocks := classes[c.class].blocks
	before := s.out
	for i := uintptr(0); i < blocks; i += 4 {
		in := *s.free.Word(i / 64) >> (i % 64) & 15
		if in == 0 || in == 15 && *(*uint64)(vm.Pointer(s.statusOf(i)))&allFree == allFree {
			continue
		}
		for j := i; in != 0; j, in = j+1, in>>1 {
			if in&1 != 0 && *StatusAt(s.statusOf(j)) < FreeZero {
				s.free.ClearRange(j, 1)
				s.out++
				c.setHoles(s, s.holes&^s.systemPages(s.Base+j*s.Size, s.Base+(j+1)*s.Size))
			}
		}
	}
	c.out += int(s.out - before)
	if before == 0 && s.out > 0 {
		c.emptySpans--
	}
	if before < uint32(blocks) && s.out == uint32(blocks) {
		c.remove(s)
	}
}

// setHoles sets the holes of s.
func (c *central) setHoles(s *Span, holes uint32) {
	c.holes -= s.holeBytes()
	s.holes = holes
	c.holes += s.holeBytes()
}

// close drops the spans without freeing them. The page heap frees their memory.
func (c *central) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.homes.all {
		l := &x.partial[c.class]
		l.List = pages.List{}
		l.n.Store(0)
	}
	c.spans, c.emptySpans, c.out, c.holes, c.limbo = 0, 0, 0, 0, 0
}
