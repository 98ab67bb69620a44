// Reset: reclamation of a Shared's blocks, based on epochs.
//
// Reset increments the generation and waits for no goroutine. No more blocks are cut off chunks of
// earlier generations: a processor that finds one in its slot takes the slow path and replaces it.
//
//	full, partial -- Reset --------+
//	                               +--> retired --epoch passed--> spare
//	table -- removed from slot ----+
//
// # Why no memory is recycled under a guard
//
// A chunk is retired after its last block was cut off. If it was full or partial, it had left the
// table before. If it was in the table, the holder of its slot or a Drain has removed it. A later
// Seal of the retire list ends every epoch with a guard that was entered before that block was cut
// off. The chunk is recycled once these epochs have passed.

package arena

import (
	"math"

	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/retire"
)

// Enter returns a guard, which the caller must Leave; see Reset. It takes no lock and never waits
// (BenchmarkSharedGuard). It is Enter of SharedOptions.Domain, if set.
func (s *Shared) Enter() epoch.Guard {
	if s.readers == nil { // without a call, so that Enter is inlined
		panic("freehold: arena.Shared.Enter: zero value: arena.NewShared makes a Shared")
	}
	return s.readers.Enter()
}

// Reset gives up all blocks. It is safe while other goroutines allocate, read and call Reset. It
// takes about a microsecond and never waits for a guard.
//
// An Alloc called after Reset has returned gets memory that no guard protects. An Alloc that
// overlaps Reset gets a block from before or from after it. An Alloc that needs a chunk, Reset,
// Stats or Trim later recycles the memory of the given-up blocks, under these rules:
//
//   - A guard entered before a block's Alloc was called keeps the block from
//     being recycled, across any number of Resets.
//   - A guard entered before a Reset was called keeps all blocks that this Reset
//     gave up.
//   - Without such a guard a block is valid until the first Reset that returns
//     after its Alloc was called. It may then be recycled at once.
//
// A goroutine that allocates while others may Reset must enter a guard first, and keep it as long
// as it uses the block. A reader enters a guard, looks blocks up, and leaves when it is done with
// them. The caller of Reset must first unlink the blocks, so that later readers do not find them.
// Before linking a block, a writer must make sure that no Reset was called since its Alloc began. A
// guard held for long keeps all memory that is given up meanwhile: see SharedStats.Retired.
//
// With FREEHOLD_DEBUG=poison, recycled memory is filled with 0xDB, so that late reads show. Reset
// then stops the world, and if there are no guards it recycles at once.
func (s *Shared) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen("arena.Shared.Reset")
	s.generation.Add(1)
	s.full = s.partial.moveTo(s.full)
	s.retired.Add(s.full...)
	clear(s.full)
	s.full = s.full[:0]
	s.live, s.liveBytes = 0, 0
	if s.checked {
		s.drain()
		s.recycle(math.MaxInt)
	}
	s.recycle(fewChunks)
}

// fewChunks is the most chunks that one call recycles, so that a Reset of many chunks is not one
// long pause.
const fewChunks = 64

// recycle seals the retire list. Then it makes up to n retired chunks spare, oldest first, if their
// epoch has passed. It reports whether it made any spare. mu is held.
func (s *Shared) recycle(n int) bool {
	s.retired.Seal(s.readers)
	left := n
	for left > 0 {
		chunks := s.retired.Pop(left)
		if chunks == nil {
			break
		}
		for _, c := range chunks {
			c.rewind(s.checked)
			if c.dedicated {
				s.spareDedicated.add(c)
			} else {
				s.spare.add(c)
			}
		}
		left -= len(chunks)
	}
	return left < n
}

// Trim recycles given-up memory that no guard protects, and then returns all spare chunks to the
// parent. Like Stats it stops the world for about 20 us.
func (s *Shared) Trim() { s.trim("arena.Shared.Trim", 0) }

// TrimTo is Trim until the arena holds at most size bytes. It returns dedicated chunks first, and
// the larger ones of a kind first. It is cheap if the arena holds no more than size. A negative
// size panics. Like Trim it is safe while other goroutines allocate and read. Chunks in use, and
// chunks that a guard protects, stay, so the arena may hold more than size after it.
func (s *Shared) TrimTo(size int) {
	arg.AtLeast("arena.Shared.TrimTo", "size", size, 0)
	s.trim("arena.Shared.TrimTo", size)
}

func (s *Shared) trim(call string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen(call)
	if s.reserved > size {
		s.drain()
		s.recycle(math.MaxInt)
		s.freeSpare(size)
	}
}

// SharedStats is a snapshot of a [Shared]'s memory. Sizes are bytes.
type SharedStats struct {
	Name      string // SharedOptions.Name
	Live      int    // blocks allocated since the last Reset and not freed
	LiveBytes int    // the sum of their lengths
	Reserved  int    // in all chunks
	Retired   int    // in chunks given up by Reset that guards may protect
	Spare     int    // in chunks ready for use
	Chunks    int    // in use, retired or spare
	MaxBytes  int    // the limit on Reserved; 0 if there is none
}

// Stats returns the arena's figures, exact for all calls that have returned. It
// drains the processors' chunks, which stops the world for about 20 us or more:
// Alloc and Free count without atomic operations. It may be called after Close.
func (s *Shared) Stats() SharedStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	s.recycle(math.MaxInt)
	st := SharedStats{
		Name:      s.name,
		Live:      s.live,
		LiveBytes: s.liveBytes,
		Reserved:  s.reserved,
		Spare:     s.spareBytes(),
		Chunks:    len(s.chunks),
		MaxBytes:  s.maxBytes,
		Retired:   s.retiredBytes(),
	}
	return st
}

// spareBytes returns the bytes in the spare chunks. mu is held.
func (s *Shared) spareBytes() int { return s.spare.bytes + s.spareDedicated.bytes }

// retiredBytes returns the bytes in the retired chunks. mu is held.
func (s *Shared) retiredBytes() (sum int) {
	for c := range s.retired.All() {
		sum += len(c.mem)
	}
	return sum
}

// Reserved returns SharedStats.Reserved. It costs a lock, and does not stop the world.
func (s *Shared) Reserved() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserved
}

// Live returns the number of blocks allocated since the last Reset and not freed.
// It costs as much as Stats.
func (s *Shared) Live() int { return s.Stats().Live }

// Close returns all memory to the parent, live blocks included. Other goroutines must have stopped
// using the arena. Later calls that allocate, resize or free a block, or change the arena in
// another way, panic. Close, Enter, Free of nil and calls that only report still work. Close the
// arena before its parent: if the parent is a closed [freehold.Heap], Close panics.
//
// Close panics, and changes nothing, if a held guard of the Domain may protect a block of the
// arena. If blocks were allocated since the last Reset, any guard may. Otherwise only a guard that
// keeps memory in SharedStats.Retired may. To close an arena while the Domain's other containers
// have readers, unlink its blocks, Reset it, and Close it once Retired is 0.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return
	}
	if len(s.chunks) > 0 {
		owners.MustHaveParent("arena.Shared.Close", s.parent)
	}
	s.drain()
	s.recycle(math.MaxInt)
	if s.spareBytes() < s.reserved && !s.readers.Advance().Passed() {
		arg.Panicf("arena.Shared.Close", "a guard is held that may protect its blocks")
	}
	s.closed.Store(true)
	owners.Closed(s)
	for _, c := range s.chunks {
		asan.Unpoison(c.mem)
		s.parent.Free(c.mem)
	}
	s.chunks, s.full, s.retired = nil, nil, retire.Queue[*sharedChunk]{}
	s.partial, s.spare, s.spareDedicated = spareSet{}, spareSet{}, spareSet{}
	s.reserved, s.live, s.liveBytes = 0, 0, 0
}
