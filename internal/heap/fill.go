// Fill: what memory without a block holds, where that is checked.

package heap

const poisonByte = 0xDB

// fillPoison fills b with poisonByte.
func fillPoison(b []byte) {
	for n := copy(b, []byte{poisonByte}); n > 0 && n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// firstWritten returns the index of the first byte of b that is not poisonByte, or -1.
func firstWritten(b []byte) int {
	for i, c := range b {
		if c != poisonByte {
			return i
		}
	}
	return -1
}
