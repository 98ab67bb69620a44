// Reset: how a Shared gives all blocks up while they are in use.
//
// Reset counts the generation up. From there on a chunk of the generation before
// is handed nothing more out of: who finds one in the table takes the slow path
// and replaces it. Nobody is waited for.
//
//	full, unplaced --- Reset ----+
//	                             +--> retired with the epoch --> spare
//	table -- replaced there -----+      that was ended then
//
// # Why no memory is recycled under a guard
//
// A chunk is retired after its last block was cut off: the chunks in full and
// unplaced left the table before, and a chunk in the table is retired by the
// holder of its slot, or by a Drain of the table. Advance follows and ends
// every epoch in which a guard was entered before that block was cut off. The
// chunk is recycled when those epochs have passed.

package arena

import (
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/arg"
)

// Enter returns a guard, which the caller must Leave; see Reset. It takes no lock
// and never waits (BenchmarkSharedGuard). With SharedOptions.Domain it is the
// Domain's Enter.
func (s *Shared) Enter() epoch.Guard { return s.readers.Enter() }

// Reset gives up all blocks and starts anew; it is safe while others allocate,
// read and call Reset. It takes a microsecond or so and waits for nobody.
//
// An Alloc that is called after Reset returned gets memory that no guard sees.
// One that runs meanwhile gets a block from before or from after the Reset. The
// memory of the blocks given up is recycled later, by an Alloc that needs a
// chunk, by Reset, Stats or Trim, under these rules:
//
//   - A block is not recycled while a guard is held that was entered before the
//     block's Alloc was called, whatever Resets there are.
//   - Nor is any block while a guard is held that was entered before the Reset
//     was called that gave the block up.
//   - Without such a guard a block is valid until the first Reset that returns
//     after its Alloc was called. It may then be recycled at once.
//
// So those who allocate while others may Reset do it under a guard, and keep the
// guard as long as they use the block. Readers enter a guard, look blocks up
// where they can be found, and leave when they have done with them. Whoever
// calls Reset first unlinks the blocks that it gives up, so that readers who
// enter from then on do not find them; and whoever links a block makes sure that
// no Reset was called since before its Alloc. A guard that is held for long
// keeps all that is given up meanwhile: see SharedStats.Retired.
//
// In builds with the tag freehold_debug, memory is filled with 0xDB when it is
// recycled, by Reset itself if there are no guards, so that late reads show. It
// then stops the world.
func (s *Shared) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen("arena.Shared.Reset")
	s.generation.Add(1)
	s.outdated = append(append(s.outdated, s.full...), s.unplaced...)
	clear(s.full)
	clear(s.unplaced)
	s.full, s.unplaced = s.full[:0], s.unplaced[:0]
	s.live, s.liveBytes = 0, 0
	if debug {
		s.drain()
	}
	s.recycle()
}

// recycle retires outdated chunks, and makes those retired ones spare whose
// epoch has passed. mu is held.
func (s *Shared) recycle() {
	if len(s.outdated) > 0 {
		s.retired = append(s.retired, sharedBatch{epoch: s.readers.Advance(), chunks: s.outdated})
		s.outdated = nil
	}
	for len(s.retired) > 0 && s.retired[0].epoch.Passed() {
		for _, c := range s.retired[0].chunks {
			c.rewind()
			if c.own {
				s.spareOwn.add(c)
			} else {
				s.spare = append(s.spare, c)
			}
		}
		s.retired[0] = sharedBatch{}
		s.retired = s.retired[1:]
	}
}

// Trim gives the memory that was recycled and is not in use back to the parent.
// Like Stats it stops the world for some 20 us.
func (s *Shared) Trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen("arena.Shared.Trim")
	s.drain()
	s.recycle()
	s.giveBack()
}

// SharedStats is a snapshot of a [Shared]'s memory. Sizes are bytes.
type SharedStats struct {
	Live      int // blocks allocated since the last Reset, and not freed
	LiveBytes int // theirs, as the sum of their lengths
	Reserved  int // in chunks, whatever is in them
	Retired   int // in chunks given up by Reset that guards may see
	Spare     int // in chunks that are ready for use
	Chunks    int // in use, retired or spare
	MaxBytes  int // the limit on Reserved; 0 if there is none
}

// Stats returns the arena's figures, exact for all calls that have returned. It
// takes the chunks of all processors for a moment, for which it stops the world
// for some 20 us or more: Alloc and Free count without atomic operations. It may
// be called after Close.
func (s *Shared) Stats() SharedStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain()
	s.recycle()
	st := SharedStats{
		Live:      s.live,
		LiveBytes: s.liveBytes,
		Reserved:  s.reserved,
		Spare:     s.spareBytes(),
		Chunks:    len(s.chunks),
		MaxBytes:  s.maxBytes,
	}
	for _, r := range s.retired {
		st.Retired += bytesIn(r.chunks)
	}
	return st
}

// spareBytes returns how many bytes the spare chunks have. mu is held.
func (s *Shared) spareBytes() int { return bytesIn(s.spare) + s.spareOwn.bytes }

func bytesIn(chunks []*sharedChunk) (sum int) {
	for _, c := range chunks {
		sum += len(c.mem)
	}
	return sum
}

// Live returns the number of blocks allocated since the last Reset and not freed.
// It costs as much as Stats.
func (s *Shared) Live() int { return s.Stats().Live }

// Close gives all memory back to the parent, live blocks or not. Other
// goroutines must have stopped using the arena. Calls after Close panic, but for
// Close itself and Free of an empty block. The arena is closed before its parent:
// Close after that of a [freehold.Heap] panics.
//
// Close panics, and changes nothing, if a guard is held that may protect a block
// of the arena, whichever container of its Domain it was entered for: any guard,
// if blocks were allocated since the last Reset, and otherwise one that keeps
// memory in SharedStats.Retired. To close an arena while readers of the Domain's
// other containers come and go, unlink its blocks, Reset it, and Close it once
// Retired is 0.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.drain()
	s.recycle()
	if s.spareBytes() < s.reserved && !s.readers.Advance().Passed() {
		arg.Panicf("arena.Shared.Close", "a guard is held that may protect its blocks")
	}
	if s.member != nil {
		s.member.end()
		s.member = nil
	}
	s.closed = true
	for _, c := range s.chunks {
		s.parent.Free(c.mem)
	}
	s.chunks, s.full, s.unplaced, s.outdated, s.retired, s.spare, s.spareOwn = nil, nil, nil, nil, nil, nil, spareSet{}
	s.reserved, s.live, s.liveBytes = 0, 0, 0
}
