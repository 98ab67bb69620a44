package pintest

import (
	"flag"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
)

// LeavesTakeNoPins compares plain and pinned, two structs of functions. If there is no obstacle
// to plain leaves, each function in plain must differ from the one in pinned; otherwise they
// must be equal. It also checks that the compiler adds no calls to leaves, unless a flag tells
// it to: then it may add them to some.
func LeavesTakeNoPins(t *testing.T, plain, pinned any) {
	got, want, obstacle := reflect.ValueOf(plain), reflect.ValueOf(pinned), pin.Obstacle()
	compiler := strings.HasPrefix(obstacle, "the compiler")
	for i := range got.NumField() {
		takesPin := got.Field(i).Pointer() == want.Field(i).Pointer()
		if takesPin != (obstacle != "") && !compiler {
			t.Errorf("%s takes a pin: %t; obstacle %q", got.Type().Field(i).Name, takesPin, obstacle)
		}
	}
	if compiler && !instrumented() {
		t.Error(obstacle)
	}
}

// instrumented reports whether flags or tags add calls to functions, or the test runs for coverage
// or fuzzing.
func instrumented() bool {
	if f := flag.Lookup("test.fuzz"); testing.CoverMode() != "" || f != nil && f.Value.String() != "" {
		return true
	}
	build, _ := debug.ReadBuildInfo()
	for _, s := range build.Settings {
		if s.Key == "-gcflags" || s.Key == "-tags" && (strings.Contains(s.Value, "freehold_seams") || strings.Contains(s.Value, "freehold_ranks")) {
			return true
		}
	}
	return false
}
