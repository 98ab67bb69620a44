// Chunks: the index arithmetic of chunked arrays, which grow without moving elements.
//
// The first four chunks have 1<<first elements each, the next four twice that number, and so
// on. With first = 0:
//
//	chunk      0   1   2   3   4     5     6     7     8        9
//	elements   0   1   2   3   4 5   6 7   8 9   . .   . . . .  . . . .
//
// So the last chunk is at most a quarter of the elements before it, or one of the first four.

// Package chunks locates elements in arrays that grow by chunks.
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

// mask tells the compiler that a shift is less than a word's bits, which saves instructions.
const mask = bits.UintSize - 1

// Len returns the number of elements in a chunk.
func Len(chunk, first uint) uint { return 1 << (first + chunk/4) }

// Start returns the index of the first element of a chunk.
func Start(chunk, first uint) uint { return (4+chunk%4)<<(first+chunk/4) - 4<<first }
