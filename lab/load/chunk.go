package load

import (
	"encoding/binary"
	"fmt"
)

const pageBytes = 4096

// A chunk is a block under test with its stamp, which no other chunk of its
// share has: each page and the end of b hold a word made from it.
//
//	b: | word |   | word |   | word |  ...  | word |
//	   0          4096       8192           len-8
type chunk struct {
	b     []byte
	stamp uint64
}

// word returns the word of a chunk at an offset.
func (c chunk) word(offset int) uint64 {
	return (c.stamp + uint64(offset) + 1) * 0x9e3779b97f4a7c15
}

// offsets are those that hold a word. b has at least 16 bytes.
func (c chunk) offsets(yield func(at int) bool) {
	end := len(c.b) - 8
	for at := 0; at <= end-8; at += pageBytes {
		if !yield(at) {
			return
		}
	}
	yield(end)
}

// fill writes the pattern, which touches every page.
func (c chunk) fill() {
	for at := range c.offsets {
		binary.LittleEndian.PutUint64(c.b[at:], c.word(at))
	}
}

// check verifies the pattern.
func (c chunk) check() error {
	for at := range c.offsets {
		if got := binary.LittleEndian.Uint64(c.b[at:]); got != c.word(at) {
			return fmt.Errorf("memory corrupted: a chunk of %d bytes at %p holds %#016x at offset %d, where %#016x was written", len(c.b), c.b, got, at, c.word(at))
		}
	}
	return nil
}
