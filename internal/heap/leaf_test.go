package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/pintest"
)

func TestLeavesTakeNoPins(t *testing.T) {
	pintest.LeavesTakeNoPins(t, plain, pinned)
	pintest.LeavesTakeNoPins(t, runLeaves, runsPinned)
}
