//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package spill

import "math"

// FreeDescriptors returns math.MaxInt: the system's limit is unknown.
func FreeDescriptors() int { return math.MaxInt }
