//go:build !amd64 || race || freehold_portable || asan

package pin

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Of the three kinds of build without assembly, Obstacle names the one that this is.
func TestObstacleNamesTheBuild(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test has no build info")
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	want := "there is no assembly with the tag freehold_portable"
	switch {
	case runtime.GOARCH != "amd64":
		want = "there is no assembly for " + runtime.GOARCH
	case settings["-race"] == "true":
		want = "there is no assembly with -race"
	case settings["-asan"] == "true":
		want = "there is no assembly with -asan"
	}
	if got := Obstacle(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
