// Marks: rewinding an arena to an earlier state.
//
//	Mark 1   Mark 2   Mark 3   Rewind(1)   Mark 4   now
//	  |        |        |          |          |
//	  +--------+--------+----------+          |
//	         stale    stale
//
// Marks are numbered. A Rewind to mark n makes marks n+1 to the last one stale,
// and records that interval. A Rewind to an older mark merges the newer intervals
// into its own; Reset drops all. A mark costs no memory, nor does a Rewind to the
// newest mark.

package arena

import (
	"slices"

	"github.com/freehold-go/freehold/internal/arg"
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

// numbers is the interval (after, upTo] of mark numbers.
type numbers struct{ after, upTo uint64 }

// Mark returns the arena's current state. See BenchmarkRewind for its cost.
func (a *Arena) Mark() Mark {
	a.mustBeOpen("arena.Arena.Mark")
	a.lastMark++
	return Mark{arena: a, number: a.lastMark, used: a.used, current: a.current, top: a.top, filled: a.filled, live: a.live}
}

// Rewind ends the blocks allocated or grown since m, and keeps their memory. The
// same mark may be rewound to repeatedly. A Rewind to an older mark, and Reset,
// make it stale. It panics for a stale mark, and for one of another
// arena.
//
// It takes the same time whatever was allocated (BenchmarkRewind).
func (a *Arena) Rewind(m Mark) {
	const call = "arena.Arena.Rewind"
	a.mustBeOpen(call)
	switch {
	case m.arena != a:
		arg.Panicf(call, "a mark of another arena")
	case a.isStale(m.number):
		arg.Panicf(call, "a mark that a Rewind to an older one, or a Reset, has ended")
	}
	if m.number < a.lastMark {
		older := len(a.stale)
		for older > 0 && a.stale[older-1].after >= m.number {
			older--
		}
		a.stale = append(a.stale[:older], numbers{m.number, a.lastMark})
	}
	a.rewind(&m)
}

// Reset ends all blocks and keeps the memory as spare chunks. All marks become
// stale.
//
// Its cost, and that of the first block after it, do not depend on the number of
// chunks (BenchmarkReset).
func (a *Arena) Reset() {
	a.mustBeOpen("arena.Arena.Reset")
	a.resetTo, a.stale = a.lastMark, a.stale[:0]
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
		}
		return
	}
	a.leave()
	if debug {
		a.poisonSince(m)
	}
	a.used = m.used
	if m.current >= 0 {
		a.enter(m.current, m.top)
	}
	a.filled = m.filled
	a.publish()
}

// isStale reports whether the mark with the given number is stale.
func (a *Arena) isStale(number uint64) bool {
	if number <= a.resetTo {
		return true
	}
	// The first interval that does not end before the number.
	i, _ := slices.BinarySearchFunc(a.stale, number, func(s numbers, number uint64) int {
		if s.upTo < number {
			return -1
		}
		return 1
	})
	return i < len(a.stale) && a.stale[i].after < number
}
