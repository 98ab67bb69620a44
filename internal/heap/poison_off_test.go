//go:build asan || freehold_debug

package heap

// The tests here are of the engine. Builds in which all blocks are poisoned are tested through
// package freehold, and those of the sanitizer in package sanitizers.
func init() {
	quarantineBytes = 0
	chooseEntries()
}
