package arena

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/pintest"
)

func TestLeavesTakeNoPins(t *testing.T) { pintest.LeavesTakeNoPins(t, plain, pinned) }

// PlainShared has arenas use functions in Go until restore is called, with pins or as package
// pin can.
func PlainShared(pins bool) (restore func()) {
	was := fast
	fast = plain
	if pins {
		fast = pinned
	}
	return func() { fast = was }
}
