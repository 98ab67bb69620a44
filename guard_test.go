package freehold_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/watch"
)

// A heap conforms if FREEHOLD_DEBUG guards all of its blocks, or some.
func TestHeapConformsWithGuards(t *testing.T) {
	if !watch.CanGuard {
		t.Skip("no guards here")
	}
	if os.Getenv("FREEHOLD_DEBUG") != "" {
		return // this is the child
	}
	child.Need(t)
	modes := []string{"guard", "guard=1/3,profile=500"}
	if testing.Short() {
		modes = modes[:1]
	}
	for _, mode := range modes {
		cmd := exec.Command(os.Args[0], "-test.short", "-test.skip=_(Stats|Trim)$", "-test.run=^(TestHeapConforms|TestCacheConforms|TestPagesConform|TestArguments.*)$|^Example")
		cmd.Env = append(os.Environ(), "FREEHOLD_DEBUG="+mode)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}
