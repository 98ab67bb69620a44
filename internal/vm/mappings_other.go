//go:build !linux

package vm

import "math"

// Mappings returns how many mappings the process may have: a number without meaning here.
func Mappings() int { return math.MaxInt }
