//go:build !amd64

package pin

import "runtime"

// Obstacle returns the reason why no assembly runs: this build has none.
func Obstacle() string { return "there is no assembly for " + runtime.GOARCH }
