// Fill: what memory without a block holds, where that is looked at.

package watch

const fillByte = 0xDB

func fill(b []byte) {
	for n := copy(b, []byte{fillByte}); n > 0 && n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// firstWritten returns the index of the first byte of b that is not the fill, or -1.
func firstWritten(b []byte) int {
	for i, c := range b {
		if c != fillByte {
			return i
		}
	}
	return -1
}
