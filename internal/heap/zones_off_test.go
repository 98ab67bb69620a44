//go:build asan

package heap

import "github.com/freehold-go/freehold/internal/watch"

// The tests here are of blocks that are not watched. With the address sanitizer all blocks would be
// watched; package sanitizers tests that.
func init() {
	watch.SetQuarantine(0)
}
