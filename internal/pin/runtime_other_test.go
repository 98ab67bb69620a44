//go:build (!amd64 && !arm64) || race || freehold_portable || asan

package pin

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Obstacle names the kind of this build, of those without a fast path.
func TestObstacleNamesTheBuild(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test has no build info")
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	want := "there is no fast path with the tag freehold_portable"
	switch {
	case runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64":
		want = "there is no fast path for " + runtime.GOARCH
	case settings["-race"] == "true":
		want = "there is no fast path with -race"
	case settings["-asan"] == "true":
		want = "there is no fast path with -asan"
	}
	if got := Obstacle(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
