// Zones: what memory holds that is nobody's: red zones, and blocks in quarantine.
//
// It is filled, and a write to it is found when somebody looks. With -asan it is poisoned
// instead: the sanitizer reports each access at once, so nothing is filled and nothing looked
// at. Free memory of the engine's stays poisoned then: it does not touch that but to clear it,
// by a call that the sanitizer does not see.

package watch

import (
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/poison"
)

// permit makes b the user's.
func permit(b []byte) { asan.Unpoison(b) }

// forbid makes b nobody's.
func forbid(b []byte) { poison.Leave(b) }

// forsake makes b the engine's.
func forsake(b []byte) { asan.Poison(b) }

// written returns the index of the first byte in b that was written since forbid, or -1.
func written(b []byte) int {
	if asan.Enabled {
		return -1
	}
	return poison.Other(b, poison.Fill)
}
