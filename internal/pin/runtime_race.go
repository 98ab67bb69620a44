//go:build amd64 && race

package pin

// Obstacle returns the reason why no assembly runs.
func Obstacle() string { return "there is no assembly with -race" }
