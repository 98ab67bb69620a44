//go:build asan

package heap

// The tests here are of the engine. Blocks that the sanitizer checks are tested through package
// freehold and in package sanitizers.
func init() { quarantineBytes = 0 }
