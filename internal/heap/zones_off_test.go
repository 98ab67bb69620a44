//go:build asan

package heap

import "github.com/freehold-go/freehold/internal/watch"

// The tests here are of the engine. Builds in which all blocks are watched are tested through
// package freehold, and those of the sanitizer in package sanitizers.
func init() {
	watch.SetQuarantine(0)
}
