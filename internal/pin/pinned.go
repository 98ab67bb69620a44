//go:build (!amd64 && !arm64) || race || freehold_portable || asan

package pin

// Unpinned returns pinned: this build has no other way to call leaf.
func Unpinned[F any](leaf, pinned F) F { return pinned }

// SlotAt returns the number of the slot that the caller of a leaf holds: at.
func SlotAt(at uintptr) int { return int(at) }
