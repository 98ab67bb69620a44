//go:build (!amd64 && !arm64) || race || freehold_portable || asan

package pin

// Unpinned returns pinned: this build has no other way to call leaf.
func Unpinned[F any](leaf, slow, pinned F) F { return pinned }

// SlotAt returns the number of the slot that the caller of a leaf holds: at.
func SlotAt(at uintptr) int { return int(at) }

// None is at for slow, from a caller who holds no slot.
const None = ^uintptr(0)

// Held reports whether the caller of a leaf holds a slot.
func Held(at uintptr) bool { return at != None }
