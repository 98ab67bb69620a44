// Chunks: arrays whose elements never move.
//
// The first four chunks have 1<<first elements each, the next four twice as many, and so
// on. With first = 0:
//
//	chunk      0   1   2   3   4     5     6     7     8        9
//	elements   0   1   2   3   4 5   6 7   8 9   . .   . . . .  . . . .
//
// So the last chunk has at most a quarter of all elements before it, or is one of the
// first four.

// Package chunks computes where elements are in arrays that grow by chunks.
package chunks

import "math/bits"

// Locate returns the chunk of element i, and the element's index in it.
//
// Precondition: i + 4<<first does not overflow.
func Locate(i, first uint) (chunk, at uint) {
	i += 4 << (first & mask)
	shift := uint(bits.Len(i)) - 3
	return 4*(shift-first) + i>>(shift&mask) - 4, i & (1<<(shift&mask) - 1)
}

// mask saves the instructions for shifts by more bits than a word has.
const mask = bits.UintSize - 1

// Len returns how many elements a chunk has.
func Len(chunk, first uint) uint { return 1 << (first + chunk/4) }

// Start returns the index of the first element of a chunk, which is also how many elements
// the chunks before it have.
func Start(chunk, first uint) uint { return (4+chunk%4)<<(first+chunk/4) - 4<<first }
