// Garbage: the package allocates nothing on Go's heap, except in builds with sanitizers, for
// which the compiler moves more to the heap.

//go:build !asan && !msan

package vm

import "testing"

// TestNoGarbage: the engine makes these calls while it holds locks.
func TestNoGarbage(t *testing.T) {
	src, size := committed(t, 2)
	dst, _ := committed(t, 2)
	moves := Move(dst, src, size) == nil
	if n := testing.AllocsPerRun(10, func() {
		_ = Commit(src, size)
		_ = Decommit(src, size)
		_ = Revoke(src, size)
		_ = Renew(src, size)
		if moves {
			_ = Move(dst, src, size)
		}
	}); n != 0 {
		t.Errorf("%v allocations on the Go heap, want 0", n)
	}
}
