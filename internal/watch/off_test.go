//go:build asan

package watch

// Each test chooses the blocks that are watched.
func init() { SetQuarantine(0) }
