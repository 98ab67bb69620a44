package pool

import (
	"reflect"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
)

// There is an obstacle if and only if a leaf is called with a pin: none has a frame.
func TestLeavesTakeNoPins(t *testing.T) {
	for name, f := range map[string]struct{ used, pinned any }{"pop": {pop, popPinned}, "push": {push, pushPinned}} {
		takesPin := reflect.ValueOf(f.used).Pointer() == reflect.ValueOf(f.pinned).Pointer()
		if o := pin.Obstacle(); takesPin != (o != "") {
			t.Errorf("%s takes a pin: %t; obstacle %q", name, takesPin, o)
		}
	}
}
