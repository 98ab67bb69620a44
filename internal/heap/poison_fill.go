//go:build !asan

package heap

// What the blocks of the user's, and the rest, hold. See poison_asan.go for the other way.

// permit makes b the user's.
func permit([]byte) {}

// forbid makes b nobody's.
func forbid(b []byte) { fillPoison(b) }

// leave makes b the engine's.
func leave([]byte) {}

// written returns the index of the first byte in b that was written since forbid, or -1.
func written(b []byte) int { return firstWritten(b) }
