//go:build amd64 && freehold_portable && !race && !asan

package pin

// Obstacle returns the reason why no assembly runs.
func Obstacle() string { return "there is no assembly with the tag freehold_portable" }
