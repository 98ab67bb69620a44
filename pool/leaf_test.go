package pool

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/pin"
)

// The leaves have no frames, so they call nothing: with one, pin.Obstacle says so.
func TestLeavesHaveNoFrames(t *testing.T) {
	if o := pin.Obstacle(); strings.Contains(o, "added calls or variables") {
		t.Error(o)
	}
}
