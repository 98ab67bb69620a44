//go:build amd64 && asan

package pin

// Obstacle returns the reason why no assembly runs.
func Obstacle() string { return "there is no assembly with -asan" }
