//go:build !amd64 && !arm64

package pin

import "runtime"

// Obstacle returns why there is no fast path.
func Obstacle() string { return "there is no fast path for " + runtime.GOARCH }
