// Zones: memory that no user has: red zones, and blocks in quarantine.
//
// It is filled, and a later check finds a write to it. With -asan it is poisoned instead: the
// sanitizer reports each access at once, so nothing is filled and nothing checked. Free memory of
// the engine stays poisoned then: the engine only clears it, by a call that the sanitizer does
// not see.

package watch

import (
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/poison"
)

// permit lets the user access b.
func permit(b []byte) { asan.Unpoison(b) }

// forbid makes each access to b a mistake.
func forbid(b []byte) { poison.Leave(b) }

// forsake gives b back to the engine.
func forsake(b []byte) { asan.Poison(b) }

// written returns the index of the first byte in b that was written since forbid, or -1.
func written(b []byte) int {
	if asan.Enabled {
		return -1
	}
	return poison.Other(b, poison.Fill)
}
