// Load: reads a key that is at the same place of each record, in words.

package buffer

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

const wordBytes = 8

// A load reads up to 8 bytes of a record as a number.
type load struct {
	at     uintptr // offset of the 8 bytes to read
	little bool    // the byte order
	left   uint8   // shifts that drop bytes of other fields
	right  uint8
}

func (l *load) word(record unsafe.Pointer) uint64 {
	w := binary.BigEndian.Uint64((*[8]byte)(unsafe.Add(record, l.at))[:])
	if l.little {
		w = bits.ReverseBytes64(w)
	}
	return w << (l.left & 63) >> (l.right & 63)
}

// loads returns the loads of part p, the most significant one first. The records have size
// bytes, at least 8.
func (p *part) loads(size int) (loads []load) {
	for at, n := p.at, p.n; n > 0; at, n = at+wordBytes, n-wordBytes {
		from, width := min(at, size-wordBytes), min(n, wordBytes)
		loads = append(loads, load{
			at: uintptr(from), little: p.little,
			left: uint8(8 * (at - from)), right: uint8(64 - 8*width),
		})
	}
	return loads
}
