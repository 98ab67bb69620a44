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

// word returns what a chunk holds at an offset.
func (c chunk) word(offset int) uint64 {
	return (c.stamp + uint64(offset) + 1) * 0x9e3779b97f4a7c15
}

// fill writes the pattern, which touches every page. b has at least 16 bytes.
func (c chunk) fill() {
	end := len(c.b) - 8
	for at := 0; at <= end-8; at += pageBytes {
		binary.LittleEndian.PutUint64(c.b[at:], c.word(at))
	}
	binary.LittleEndian.PutUint64(c.b[end:], c.word(end))
}

// check verifies the pattern.
func (c chunk) check() error {
	end := len(c.b) - 8
	for at := 0; at <= end-8; at += pageBytes {
		if got := binary.LittleEndian.Uint64(c.b[at:]); got != c.word(at) {
			return c.spoiled(at, got)
		}
	}
	if got := binary.LittleEndian.Uint64(c.b[end:]); got != c.word(end) {
		return c.spoiled(end, got)
	}
	return nil
}

func (c chunk) spoiled(at int, got uint64) error {
	return fmt.Errorf("memory corrupted: a chunk of %d bytes at %p holds %#016x at offset %d, where %#016x was written",
		len(c.b), c.b, got, at, c.word(at))
}
