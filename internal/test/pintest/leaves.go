package pintest

import (
	"flag"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
)

// LeavesTakeNoPins tests that each function in plain is another than that in pinned, both
// structs of functions, if and only if there is no obstacle; and that the compiler adds no calls
// to leaves, unless it is told to by a flag. Then it may add them to some.
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

// instrumented reports whether flags tell the compiler to change functions, or the test is for
// coverage or fuzzing.
func instrumented() bool {
	if f := flag.Lookup("test.fuzz"); testing.CoverMode() != "" || f != nil && f.Value.String() != "" {
		return true
	}
	build, _ := debug.ReadBuildInfo()
	for _, s := range build.Settings {
		if s.Key == "-gcflags" {
			return true
		}
	}
	return false
}
