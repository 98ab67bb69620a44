// Refill: the slow path of a Shared's Alloc, under its lock.
//
// A chunk comes, in this order, from
//
//  1. this generation's chunks that left the table with room in them,
//  2. chunks that earlier generations gave up and no guard sees any more,
//  3. the parent,
//
// and before an Alloc fails, from the other processors, and once more from the
// parent when the spare chunks, none of which fits, have gone back to it.

package arena

import (
	"fmt"
	"math"
	"slices"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// refill is Alloc where the processor's chunk will not do. zero says that the
// block is known to be zero; that is tried for if wantZero.
func (s *Shared) refill(size, align int, wantZero bool) (b []byte, zero bool, err error) {
	call := "arena.Shared.Alloc"
	if wantZero {
		call = "arena.Shared.Zeroed"
	}
	arg.AtLeast(call, "size", size, 0)
	arg.Align(call, align)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen(call)
	if size == 0 {
		return []byte{}, true, nil
	}
	own := max(size, align) > s.chunkBytes/4
	if !own {
		if b := s.takeHere(size, align, nil); b != nil {
			return b, false, nil
		}
	}
	c, err := s.obtain(size, align, own, wantZero)
	if err != nil {
		return nil, false, err
	}
	if wantZero && !own && !c.zero && c.at == 0 {
		s.clearUnlocked(c)
	}
	c.generation = s.generation.Load()
	if own {
		b = c.take(size, align)
		s.unplace(c)
		return b, c.zero, nil
	}
	return s.takeHere(size, align, c), false, nil
}

// clearUnlocked clears a chunk that is in no list and has no blocks. It takes
// so long that mu, which is held, is not held meanwhile.
func (s *Shared) clearUnlocked(c *sharedChunk) {
	s.mu.Unlock()
	defer s.mu.Lock()
	clear(c.mem)
	c.zero = true
}

// takeHere is Alloc in the chunk of the processor that it runs on by now, or, if
// that will not do, in next, which replaces the chunk. A chunk of an earlier
// generation leaves the table in any case. mu is held.
//
// Precondition: next is nil, or of this generation and has room for the block.
func (s *Shared) takeHere(size, align int, next *sharedChunk) (b []byte) {
	generation := s.generation.Load()
	if next != nil {
		next.mostRoom = uint(len(next.mem)) - next.at
	}
	slot := s.table.Enter()
	old := s.table.Entry(slot)
	stale := old.generation != generation
	if !stale {
		b = old.take(size, align)
	}
	replace := b == nil && (next != nil || stale)
	if replace {
		s.table.Take(slot)
	}
	s.table.Leave(slot)

	if replace {
		s.unplace(old)
	}
	if b == nil && next != nil {
		b = next.take(size, align)
		s.place(slot, next)
	} else if next != nil {
		s.unplace(next)
	}
	return b
}

// place puts a chunk into a slot, or, if the slot has one or is beyond the table,
// where chunks without a slot belong. mu is held.
func (s *Shared) place(slot int, c *sharedChunk) {
	if !s.table.Install(s.table.Slot(slot), func() *sharedChunk { return c }) {
		s.unplace(c)
	}
}

// unplace puts a chunk that is in no slot where it belongs. mu is held.
func (s *Shared) unplace(c *sharedChunk) {
	switch {
	case c == &noChunk:
	case c.generation != s.generation.Load():
		if c.mem != nil {
			s.outdated = append(s.outdated, c)
		}
	default:
		s.live += c.live
		s.liveBytes += c.liveBytes
		c.live, c.liveBytes = 0, 0
		if c.mem != nil {
			s.unplaced = append(s.unplaced, c)
		}
	}
}

// drain takes every chunk out of the table. It stops the world if there are any.
// mu is held.
func (s *Shared) drain() {
	if !s.table.Any(nil) {
		return
	}
	s.table.Drain(nil, func(taken []*sharedChunk) {
		for _, c := range taken {
			s.unplace(c)
		}
	})
}

// obtain returns a chunk, out of all lists, that has room for the block; one of
// the block's size if own. mu is held.
func (s *Shared) obtain(size, align int, own, wantZero bool) (*sharedChunk, error) {
	var c *sharedChunk
	if own {
		c = s.bestSpareOwn(size, align)
	} else if c = removeFitting(&s.unplaced, size, align); c == nil {
		c = s.anySpare(size, align)
	}
	if c != nil {
		return c, nil
	}
	if s.maxBytes > 0 && size > s.maxBytes {
		return nil, s.refusal(size) // no need to stop the world
	}
	c, err := s.grow(size, align, own, wantZero)
	if err != nil {
		c = s.scrape(size, align)
	}
	if c == nil && (s.maxBytes == 0 || size <= s.maxBytes-s.reserved+s.spareBytes()) && s.giveBack() {
		c, err = s.grow(size, align, own, wantZero)
	}
	if c == nil {
		return nil, err
	}
	if !own && c.at == 0 {
		// What had no room for this block is left alone from here on, or the
		// search would grow longer and longer.
		s.full = append(s.full, s.unplaced...)
		clear(s.unplaced)
		s.unplaced = s.unplaced[:0]
	}
	return c, nil
}

// scrape looks for a chunk in every corner when the parent gives none: at the
// other processors, and among the spare ones of any kind. mu is held.
//
// It stops the world only where a processor's chunk may serve. One that did not
// returns to the table with the room that it has, and is asked for no more than
// that, so a caller who tries again and again at the limit stops it once.
func (s *Shared) scrape(size, align int) *sharedChunk {
	if s.anyMayServe(size) {
		s.drain()
	}
	c := removeFitting(&s.unplaced, size, align)
	if c == nil {
		s.recycle()
		c = removeFitting(&s.spare, size, align)
	}
	if c == nil {
		c = s.spareOwn.take(size, align, math.MaxUint)
	}
	return c
}

// anyMayServe reports whether a chunk in the table may serve a block of size
// bytes. mu is held.
func (s *Shared) anyMayServe(size int) bool {
	generation := s.generation.Load()
	return s.table.Any(func(c *sharedChunk) bool { return c.mayServe(size, generation) })
}

// anySpare takes a spare chunk that has room for the block; nil if there is none.
func (s *Shared) anySpare(size, align int) *sharedChunk {
	if len(s.spare) == 0 {
		s.recycle()
	}
	return removeFitting(&s.spare, size, align)
}

// bestSpareOwn takes a spare chunk made for one block that has room for the
// block; nil if there is none, or more than half of it would be wasted.
func (s *Shared) bestSpareOwn(size, align int) *sharedChunk {
	s.recycle()
	return s.spareOwn.take(size, align, 2*uint(size)+1)
}

// removeFitting removes the last chunk of the list that has room for the block,
// and returns it; nil if there is none.
func removeFitting(list *[]*sharedChunk, size, align int) *sharedChunk {
	for i, c := range slices.Backward(*list) {
		if c.fits(size, align) {
			*list = slices.Delete(*list, i, i+1)
			return c
		}
	}
	return nil
}

// grow takes a chunk from the parent that has room for the block: one of the
// block's size if own, else as much of chunkBytes as the limit lets. mu is held.
func (s *Shared) grow(size, align int, own, wantZero bool) (*sharedChunk, error) {
	n := size
	if !own {
		n = max(size, s.chunkBytes)
		align = max(align, s.chunkAlign)
	}
	if s.maxBytes > 0 {
		room := s.maxBytes - s.reserved
		if size > room {
			return nil, s.refusal(size)
		}
		n = min(n, room)
	}
	from := s.parent.Alloc
	if wantZero {
		from = s.parent.Zeroed
	}
	mem, err := from(n, align)
	if err != nil {
		return nil, err
	}
	if s.hugePages {
		_ = freehold.Advise(mem, freehold.AdviceHugePages) // a hint: the memory is good without
	}
	c := newSharedChunk(mem, own, wantZero)
	i, _ := s.find(c.base)
	s.chunks = slices.Insert(s.chunks, i, c)
	s.reserved += n
	return c, nil
}

// refusal is the error of an allocation that MaxBytes forbids.
func (s *Shared) refusal(size int) error {
	return fmt.Errorf("%w: %d bytes would pass the arena's limit of %d", freehold.ErrOutOfMemory, size, s.maxBytes)
}

// giveBack frees the spare chunks to the parent, and reports whether there were
// any. mu is held.
func (s *Shared) giveBack() bool {
	unused := append(s.spare, s.spareOwn.all()...)
	s.spare, s.spareOwn = nil, spareSet{}
	s.shrink(unused)
	return len(unused) > 0
}

// shrink frees chunks that are in no list to the parent. mu is held.
func (s *Shared) shrink(unused []*sharedChunk) {
	for _, c := range unused {
		c.generation = noGeneration
	}
	s.chunks = slices.DeleteFunc(s.chunks, func(c *sharedChunk) bool { return c.generation == noGeneration })
	for _, c := range unused {
		s.reserved -= len(c.mem)
		s.parent.Free(c.mem)
	}
}

// find returns the index in chunks of the one that holds the byte at addr, and
// whether there is one; if not, where it would stand. mu is held.
func (s *Shared) find(addr uintptr) (int, bool) {
	i, found := slices.BinarySearchFunc(s.chunks, addr, func(c *sharedChunk, addr uintptr) int {
		switch {
		case c.holds(addr):
			return 0
		case c.base < addr:
			return -1
		}
		return 1
	})
	return i, found
}

// ownsLocked is Owns in all of the arena's memory.
func (s *Shared) ownsLocked(addr uintptr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.find(addr)
	return found
}

// countLocked is count where the processor's slot has no chunk of this
// generation. It puts one without memory there, so that the next Free finds one:
// a processor may free and never allocate.
func (s *Shared) countLocked(live, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := "arena.Shared.Free"
	if live == 0 {
		call = "arena.Shared.Resize"
	}
	s.mustBeOpen(call)
	s.live += live
	s.liveBytes += bytes
	counts := &sharedChunk{generation: s.generation.Load()}
	slot := s.table.Enter()
	old := s.table.Entry(slot)
	stale := old.generation != counts.generation
	if stale {
		s.table.Take(slot)
	}
	s.table.Leave(slot)
	if stale {
		s.unplace(old)
		s.place(slot, counts)
	}
}

func (s *Shared) mustBeOpen(call string) {
	switch {
	case s.chunkBytes == 0:
		arg.Panicf(call, "zero value: arena.NewShared makes a Shared")
	case s.closed:
		arg.Panicf(call, "the arena is closed")
	}
}
