//go:build (!amd64 && !arm64) || race || freehold_portable || asan

package pin

// Unpinned returns pinned: this build cannot call leaf without a pin.
func Unpinned[F, P any](leaf, slow F, pinned P) P { return pinned }

// SlotAt returns at, the number of the slot that the caller of a leaf holds.
func SlotAt(at uintptr) int { return int(at) }

// None is the argument at for slow from a caller that holds no slot.
const None = ^uintptr(0)

// Held reports whether the caller of a leaf holds a slot.
func Held(at uintptr) bool { return at != None }
