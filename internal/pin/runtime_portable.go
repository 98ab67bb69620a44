//go:build (amd64 || arm64) && freehold_portable && !race && !asan

package pin

// Obstacle returns why there is no fast path.
func Obstacle() string { return "there is no fast path with the tag freehold_portable" }
