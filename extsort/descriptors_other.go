//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package extsort

import "math"

func freeDescriptors() int { return math.MaxInt }
