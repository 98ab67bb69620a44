//go:build !amd64 || race || freehold_portable || asan

package pin

import "runtime"

// Obstacle returns the reason why no assembly runs: this build has none.
func Obstacle() string {
	if runtime.GOARCH != "amd64" {
		return "there is no assembly for " + runtime.GOARCH
	}
	return "there is no assembly with -race, -asan and the tag freehold_portable"
}
