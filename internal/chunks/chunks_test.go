package chunks

import (
	"math/bits"
	"testing"
)

// Each element is in the chunk that its neighbours say, one after the other.
func TestElementsFollowEachOther(t *testing.T) {
	for _, first := range []uint{0, 1, 6, 10} {
		i := uint(0)
		for chunk := range uint(30) {
			if got := Start(chunk, first); got != i {
				t.Fatalf("first %d: chunk %d begins at %d, want %d", first, chunk, got, i)
			}
			for at := range Len(chunk, first) {
				if c, a := Locate(i, first); c != chunk || a != at {
					t.Fatalf("first %d: element %d is %d of chunk %d, want %d of %d", first, i, a, c, at, chunk)
				}
				i++
			}
		}
	}
}

// The largest indexes have places too, and a chunk is at most a quarter of all chunks before it.
func TestLargeIndexes(t *testing.T) {
	for _, first := range []uint{0, 6} {
		for i := uint(1) << (bits.UintSize - 2); i != 0; i >>= 1 {
			c, at := Locate(i, first)
			if Start(c, first)+at != i || at >= Len(c, first) {
				t.Errorf("first %d: %d is %d of chunk %d", first, i, at, c)
			}
			if c > 4 && Len(c, first) > Start(c, first)/4+1<<first {
				t.Errorf("first %d: chunk %d has %d elements after %d", first, c, Len(c, first), Start(c, first))
			}
		}
	}
}
