package heap

import (
	"reflect"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
)

// There is an obstacle if and only if a leaf is called with a pin: none has a frame.
func TestLeavesTakeNoPins(t *testing.T) {
	pinned := leafFunctions{allocPinned, freePinned, freePointerPinned, localAllocPinned, localFreePinned}
	for i := range reflect.TypeFor[leafFunctions]().NumField() {
		got, want := reflect.ValueOf(leaves).Field(i).Pointer(), reflect.ValueOf(pinned).Field(i).Pointer()
		if takesPin, o := got == want, pin.Obstacle(); takesPin != (o != "") {
			t.Errorf("function %d takes a pin: %t; obstacle %q", i, takesPin, o)
		}
	}
}
