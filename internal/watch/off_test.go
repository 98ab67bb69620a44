//go:build asan

package watch

// Tests say themselves what is watched.
func init() { SetQuarantine(0) }
