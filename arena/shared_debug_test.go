//go:build freehold_debug

package arena_test

import (
	"bytes"
	"testing"

	"github.com/freehold-go/freehold"
)

// In debug builds a read after Reset finds 0xDB, or the block if a guard protects it.
func TestSharedStaleReadsShow(t *testing.T) {
	s := newShared(t, newHeap(t), nil)
	for _, size := range []int{100, 1 << 20} { // in the processor's chunk, and in a dedicated one
		b := freehold.Must(s.Zeroed(size, 8))
		g := s.Enter()
		s.Reset()
		if bytes.Count(b, []byte{0}) != size {
			t.Error("a block under a guard has changed")
		}
		g.Leave()
		s.Reset()
		if bytes.Count(b, []byte{0xDB}) != size {
			t.Error("a block that was given up is not filled with 0xDB")
		}
		if z := freehold.Must(s.Zeroed(size, 8)); bytes.Count(z, []byte{0}) != size {
			t.Error("Zeroed is not zero")
		}
	}
}
