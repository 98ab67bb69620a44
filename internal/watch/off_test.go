//go:build asan || freehold_debug

package watch

// Tests say themselves what is watched.
func init() { SetQuarantine(0) }
