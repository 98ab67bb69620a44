// Marks: rewinding an arena to an earlier state.
//
//	Mark 1   Mark 2   Rewind(1)           Mark 3   Mark 4   Rewind(3)
//	  |   a    |   b      |         c       |   d    |   e      |        blocks
//	endings            2 at 1                               2 at 1, 4 at 3
//
// Marks are numbered, and each has a place: the number of chunks in use and the top of the current
// one. A Rewind records an ending: the number of the newest mark, and the place to which it
// returned. All marks up to that number and beyond that place are stale. A newer ending at the same
// place or before it includes an older one, which is dropped. So both the numbers and the places of
// the endings ascend, and there is at most one ending per block, however many Rewinds there are.
//
// Marks at one place are the same state, and a Rewind to one keeps the others valid. A mark costs
// no memory. A Rewind to the newest mark ends no mark and costs no memory either.

package arena

import (
	"cmp"
	"slices"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/poison"
)

// A Mark is a saved state of one arena, for [Arena.Rewind]. It holds no memory
// and may be dropped. The zero Mark belongs to no arena.
type Mark struct {
	arena   *Arena
	number  uint64
	used    int
	current int
	top     uintptr
	filled  int
	live    int
}

// A place is the end of the used memory: the number of chunks in use, and the top of the current
// one.
type place struct {
	used int
	top  uintptr
}

// beyond reports whether p is after q. Places with the same number of chunks are in the same
// current chunk, unless an ending before both makes one of them stale.
func (p place) beyond(q place) bool {
	return p.used > q.used || p.used == q.used && p.top > q.top
}

// An ending makes stale all marks that have at most a number and are beyond a place.
type ending struct {
	upTo uint64
	at   place
}

// Mark returns the arena's current state. See BenchmarkRewind for its cost.
func (a *Arena) Mark() Mark {
	a.mustBeOpen("arena.Arena.Mark")
	a.lastMark++
	return Mark{arena: a, number: a.lastMark, used: a.used, current: a.current, top: a.top, filled: a.filled, live: a.live}
}

// Rewind ends the blocks allocated or grown since m, and keeps their memory. A mark may be used
// repeatedly until it is stale. Reset makes all marks stale. Rewind makes the marks stale that have
// more blocks than m. Most of them are newer than m. An older mark has more blocks if some were
// freed before m was taken, and may become stale too. Rewind panics for a stale mark, and for a
// mark of another arena.
//
// It takes constant time (BenchmarkRewind). A Rewind to a mark that is not the newest takes up to
// 24 bytes on the Go heap, until a Rewind to the same state or an earlier one.
func (a *Arena) Rewind(m Mark) {
	const call = "arena.Arena.Rewind"
	a.mustBeOpen(call)
	switch {
	case m.arena != a:
		arg.Panicf(call, "a mark of another arena")
	case a.isStale(&m):
		arg.Panicf(call, "a mark that a Rewind to an older one, or a Reset, has ended")
	}
	if m.number < a.lastMark {
		at := place{m.used, m.top}
		before := len(a.endings)
		for before > 0 && !at.beyond(a.endings[before-1].at) {
			before--
		}
		a.endings = append(a.endings[:before], ending{a.lastMark, at})
	}
	a.rewind(&m)
}

// Reset ends all blocks and keeps the memory as spare chunks. All marks become
// stale.
//
// It takes constant time (BenchmarkReset). So does the first block after it, if it fits the first
// chunk. A larger block searches the spare chunks, in the order in which they were taken, until one
// fits.
func (a *Arena) Reset() {
	a.mustBeOpen("arena.Arena.Reset")
	a.resetTo, a.endings = a.lastMark, a.endings[:0]
	a.rewind(&Mark{current: -1})
}

// rewind restores the state m, which is not stale.
func (a *Arena) rewind(m *Mark) {
	a.live = min(a.live, m.live)
	if m.current == a.current && m.used == a.used && m.current >= 0 {
		if m.top < a.top {
			a.lower(m.top)
		} else {
			a.top = m.top // the newest blocks at m have been freed since
			if a.checked {
				a.fastEnd = m.top
			}
		}
		return
	}
	if a.checked && a.current >= 0 {
		mustBePoison(a.bytes(a.top, a.end)) // poisonSince fills it again
	}
	a.leave()
	if a.checked {
		a.poisonSince(m)
	}
	a.used = m.used
	if m.current >= 0 {
		a.enter(m.current, m.top)
	}
	a.filled = m.filled
}

// isStale reports whether m is stale.
func (a *Arena) isStale(m *Mark) bool {
	if m.number <= a.resetTo {
		return true
	}
	// The first ending that includes the mark's number has the lowest place of all that do.
	i, _ := slices.BinarySearchFunc(a.endings, m.number, func(e ending, number uint64) int {
		return cmp.Compare(e.upTo, number)
	})
	return i < len(a.endings) && place{m.used, m.top}.beyond(a.endings[i].at)
}

// poisonSince poisons the memory of blocks since m. There is no current chunk.
func (a *Arena) poisonSince(m *Mark) {
	if m.current >= 0 {
		mem := a.chunks[m.current].mem
		poison.Leave(mem[m.top-addressOf(mem):])
	}
	for _, c := range a.chunks[m.used:a.used] {
		poison.Leave(c.mem)
	}
}
