//go:build !asan

package watch

// What the blocks of the user's, and the rest, hold. See zone_asan.go for the other way.

// permit makes b the user's.
func permit([]byte) {}

// forbid makes b nobody's.
func forbid(b []byte) { fill(b) }

// forsake makes b the engine's.
func forsake([]byte) {}

// written returns the index of the first byte in b that was written since forbid, or -1.
func written(b []byte) int { return firstWritten(b) }
