// Children: programs that may end their process.

package misuse

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/watch"
	"github.com/freehold-go/freehold/track"
)

// Mistakes that may end the process run in a child process. Without a promise the child may do
// anything but hang.
func TestPromisesInChildren(t *testing.T) {
	child.Need(t)
	each(t, func(t *testing.T, p program) {
		h := p.caught.here()
		if !h.inChild() || h.kind == notPromised && testing.Short() {
			return
		}
		t.Parallel()
		if fault := h.fault(runChild(t, p)); fault != "" {
			t.Error(fault)
		}
	})
}

// Each mode of FREEHOLD_DEBUG keeps its promises and reports no twin.
func TestModes(t *testing.T) {
	child.Need(t)
	if race || asan || modeHere != "" {
		t.Skip("modes are promised for the plain build")
	}
	for _, m := range modes {
		t.Run(m.variable, func(t *testing.T) {
			if m.variable == "guard" && !watch.CanGuard {
				t.Skip("there are no guards: this build's memory is Go's own")
			}
			t.Parallel()
			out, err := start(t, "", []string{"-test.run=^(TestPromises|TestTwins|TestPromisesInChildren)$", fmt.Sprint("-test.short=", testing.Short())}, modeVariable+"="+m.variable)
			if err != nil || !strings.HasSuffix(out, "PASS\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The collector runs all the time and overwrites freed memory. The promises hold, and no twin is
// reported.
func TestHostileCollector(t *testing.T) {
	child.Need(t)
	if testing.Short() && (race || asan) {
		t.Skip("slow")
	}
	out, err := start(t, "", []string{"-test.run=^(TestPromises|TestTwins)$"}, "GOGC=1", "GODEBUG=clobberfree=1,gccheckmark=1")
	if err != nil || !strings.HasSuffix(out, "PASS\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

const (
	modeVariable  = "FREEHOLD_DEBUG"
	childVariable = "FREEHOLD_MISUSE"
	childTimeout  = 5 * time.Minute // longer than a machine may stall
)

// modeHere is the FREEHOLD_DEBUG mode of this process.
var modeHere = os.Getenv(modeVariable)

// start runs the test binary in a child process.
func start(t *testing.T, name string, args []string, env ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), childVariable+"="+name, "GORACE=atexit_sleep_ms=0"), env...)
	cmd.WaitDelay = time.Minute
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("a child was still running after %v:\n%s", childTimeout, b)
	}
	return string(b), err
}

const (
	panicMark = "outcome: panic "
	faultMark = "outcome: fault "
)

// runChild runs a program's bug in a child process.
func runChild(t *testing.T, p program) (o outcome) {
	o.output, _ = start(t, p.mistake, []string{"-test.run=^TestChild$"})
	for line := range strings.Lines(o.output) {
		if text, ok := strings.CutPrefix(line, panicMark); ok {
			o.panicked = text
		}
		o.faulted = o.faulted || strings.HasPrefix(line, faultMark)
	}
	return o
}

// TestChild runs one program's bug in a child process.
func TestChild(t *testing.T) {
	name := os.Getenv(childVariable)
	if name == "" {
		t.Skip("this is no child")
	}
	for _, f := range families {
		for _, p := range f.programs {
			if p.mistake != name {
				continue
			}
			o := run(t, p.bug, false)
			switch {
			case o.faulted:
				fmt.Println(faultMark + o.panicked)
			case o.panicked != "":
				fmt.Println(panicMark + o.panicked)
			}
			track.AtExit()
			runtime.KeepAlive(o.heap)
		}
	}
}
