//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package spill

import "math"

// FreeDescriptors returns math.MaxInt: the system has no limit that is known.
func FreeDescriptors() int { return math.MaxInt }
