// Refill: the slow path of a Shared's Alloc, under its lock.
//
// A processor whose chunk is full gets another one, in this order:
//
//  1. a partial chunk, which left the table with free bytes,
//  2. a spare chunk, whose blocks an earlier Reset gave up and no guard protects,
//  3. a new chunk from the parent.
//
// A large block gets a dedicated chunk: a spare one of a similar size, or a new one. If the parent
// refuses, lastResort takes any chunk that fits, even from another processor. If none fits, all
// spare chunks are returned, and the parent is asked once more.

package arena

import (
	"fmt"
	"math"
	"slices"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/asan"
)

// refill is the slow path of Alloc, or of Zeroed if wantZero is set; it then prefers cleared
// chunks. zero reports that the block is known to be zero.
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
	dedicated := max(size, align) > s.chunkBytes/4
	if !dedicated {
		if b := s.takeLocal(size, align, nil); b != nil {
			return b, false, nil
		}
	}
	c, err := s.obtain(size, align, dedicated, wantZero)
	if err != nil {
		return nil, false, err
	}
	if wantZero && !dedicated && !c.zero && c.at == 0 {
		s.clearUnlocked(c)
	}
	c.generation = s.generation.Load()
	if dedicated {
		b = c.take(size, align)
		s.enlist(c)
		return b, c.zero, nil
	}
	return s.takeLocal(size, align, c), false, nil
}

// clearUnlocked clears a chunk that is in no list and has no blocks. mu is held, and is
// released while it clears.
func (s *Shared) clearUnlocked(c *sharedChunk) {
	s.mu.Unlock()
	defer s.mu.Lock()
	clear(c.mem)
	c.zero = true
}

// takeLocal allocates from the chunk of the current processor. If the block does not fit, next
// replaces the chunk, and takeLocal allocates from next. A chunk of an earlier generation leaves
// the table in any case. mu is held.
//
// The goroutine may have changed processors since its fast path failed, so the block may fit the
// chunk found here. next then goes to a list.
//
// Precondition: next is nil, or of this generation and fits the block.
func (s *Shared) takeLocal(size, align int, next *sharedChunk) (b []byte) {
	generation := s.generation.Load()
	if next != nil {
		next.maxFree = uint(len(next.mem)) - next.at
	}
	slot := s.table.Enter()
	old := s.table.Value(slot)
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
		s.enlist(old)
	}
	if b == nil && next != nil {
		b = next.take(size, align)
		s.install(slot, next)
	} else if next != nil {
		s.enlist(next)
	}
	return b
}

// install puts a chunk into a slot. If the slot has a chunk or is beyond the table, the chunk goes
// to a list. mu is held.
func (s *Shared) install(slot int, c *sharedChunk) {
	if !s.table.Install(s.table.Slot(slot), func() *sharedChunk { return c }) {
		s.enlist(c)
	}
}

// enlist puts a chunk that is not in the table on its list. It adds the chunk's counts to the
// arena's, unless a Reset has ended its blocks. mu is held.
func (s *Shared) enlist(c *sharedChunk) {
	switch {
	case c == &noChunk:
	case c.generation != s.generation.Load():
		if c.mem != nil {
			s.retired.Add(c)
		}
	default:
		s.live += c.live
		s.liveBytes += c.liveBytes
		c.live, c.liveBytes = 0, 0
		switch free := len(c.mem) - int(c.at); {
		case free > 0:
			s.partial.add(c)
		case c.mem != nil:
			s.full = append(s.full, c)
		}
	}
}

// drain removes all chunks from the table. It stops the world if there are any. mu is
// held.
func (s *Shared) drain() {
	if !s.table.Any(nil) {
		return
	}
	s.table.Drain(nil, func(taken []*sharedChunk) {
		for _, c := range taken {
			s.enlist(c)
		}
	})
}

// obtain removes a chunk that fits the block from its list, or takes a new one from the parent. If
// dedicated is set, the chunk is for this block alone. mu is held.
func (s *Shared) obtain(size, align int, dedicated, wantZero bool) (*sharedChunk, error) {
	var c *sharedChunk
	if dedicated {
		c = s.bestDedicated(size, align)
	} else if c = s.partial.take(size, align, math.MaxUint); c == nil {
		c = s.anySpare(size, align)
	}
	if c != nil {
		return c, nil
	}
	if s.maxBytes > 0 && size > s.maxBytes {
		return nil, s.refusal(size) // without stopping the world
	}
	c, err := s.grow(size, align, dedicated, wantZero)
	if err != nil {
		c = s.lastResort(size, align)
	}
	if c == nil && (s.maxBytes == 0 || size <= s.maxBytes-s.reserved+s.spareBytes()) && s.freeSpare(0) {
		c, err = s.grow(size, align, dedicated, wantZero)
	}
	if c == nil {
		return nil, err
	}
	if !dedicated && c.at == 0 {
		// No partial chunk fits this block. Treat all as full, so that processors do not change
		// chunks for a few bytes.
		s.full = s.partial.moveTo(s.full)
	}
	return c, nil
}

// lastResort is called when the parent refuses. It returns any chunk that fits the block: a chunk
// of another processor, or a spare one of any kind. It returns nil if there is none. mu is held.
//
// It stops the world only if a processor's chunk may fit. A chunk that did not fit returns to the
// table with its free bytes as maxFree, so repeated calls at the limit stop the world only once.
func (s *Shared) lastResort(size, align int) *sharedChunk {
	if s.anyMayFit(size) {
		s.drain()
	}
	c := s.partial.take(size, align, math.MaxUint)
	if c == nil {
		s.recycle(math.MaxInt)
		c = s.spare.take(size, align, math.MaxUint)
	}
	if c == nil {
		c = s.spareDedicated.take(size, align, math.MaxUint)
	}
	return c
}

// anyMayFit reports whether a chunk in the table may fit a block of size bytes. mu is
// held.
func (s *Shared) anyMayFit(size int) bool {
	generation := s.generation.Load()
	return s.table.Any(func(c *sharedChunk) bool { return c.mayFit(size, generation) })
}

// anySpare returns a spare chunk that fits the block, or nil.
func (s *Shared) anySpare(size, align int) *sharedChunk {
	for {
		c := s.spare.take(size, align, math.MaxUint)
		if c != nil || !s.recycle(fewChunks) {
			return c
		}
	}
}

// bestDedicated returns the smallest spare dedicated chunk that fits the block, or nil if there is
// none or more than half of it would be wasted. It recycles only until it finds one.
func (s *Shared) bestDedicated(size, align int) *sharedChunk {
	for {
		c := s.spareDedicated.take(size, align, 2*uint(size)+1)
		if c != nil || !s.recycle(fewChunks) {
			return c
		}
	}
}

// grow takes a new chunk from the parent that fits the block. Its size is the block's if dedicated
// is set, or else chunkBytes, or less if the limit requires that. mu is held.
func (s *Shared) grow(size, align int, dedicated, wantZero bool) (*sharedChunk, error) {
	n := size
	if !dedicated {
		n = s.chunkBytes // a block is at most a quarter of it
		align = max(align, s.chunkAlign)
	}
	if s.maxBytes > 0 {
		left := s.maxBytes - s.reserved
		if size > left {
			return nil, s.refusal(size)
		}
		n = min(n, left)
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
		_ = freehold.Advise(mem, freehold.AdviceHugePages) // best effort
	}
	c := newSharedChunk(mem, dedicated, wantZero)
	i, _ := s.find(c.base)
	s.chunks = slices.Insert(s.chunks, i, c)
	s.reserved += n
	return c, nil
}

// refusal returns the error for a request of size bytes that would exceed MaxBytes.
func (s *Shared) refusal(size int) error {
	return fmt.Errorf("%w: %s more would exceed the arena's limit of %d", freehold.ErrOutOfMemory, arg.Bytes(size), s.maxBytes)
}

// freeSpare returns spare chunks to the parent until the arena holds at most keep bytes or has none
// left. It reports whether it returned any. mu is held.
func (s *Shared) freeSpare(keep int) bool {
	var unused []*sharedChunk
	for left := s.reserved; left > keep && s.spareBytes() > 0; {
		spares := &s.spareDedicated
		if spares.bytes == 0 {
			spares = &s.spare
		}
		c := spares.takeLargest()
		left -= len(c.mem)
		unused = append(unused, c)
	}
	s.shrink(unused)
	return len(unused) > 0
}

// shrink returns chunks that are on no list to the parent. mu is held.
func (s *Shared) shrink(unused []*sharedChunk) {
	for _, c := range unused {
		c.generation = noGeneration
	}
	s.chunks = slices.DeleteFunc(s.chunks, func(c *sharedChunk) bool { return c.generation == noGeneration })
	for _, c := range unused {
		s.reserved -= len(c.mem)
		asan.Unpoison(c.mem)
		s.parent.Free(c.mem)
	}
}

// find returns the index in chunks of the chunk that contains addr, and true. Otherwise it returns
// the index at which a chunk with that address belongs, and false. mu is held.
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

// ownsLocked is the slow path of Owns.
func (s *Shared) ownsLocked(addr uintptr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.find(addr)
	return found
}

// countLocked is the slow path of count: the processor's slot has no chunk of this generation. It
// installs one without memory, so that Free takes the fast path on a processor that only frees.
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
	old := s.table.Value(slot)
	stale := old.generation != counts.generation
	if stale {
		s.table.Take(slot)
	}
	s.table.Leave(slot)
	if stale {
		s.enlist(old)
		s.install(slot, counts)
	}
}

func (s *Shared) mustBeOpen(call string) {
	switch {
	case s.chunkBytes == 0:
		arg.Panicf(call, "zero value: arena.NewShared makes a Shared")
	case s.closed.Load():
		arg.Panicf(call, "the arena is closed")
	}
}
