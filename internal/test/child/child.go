// Package child runs a test again in a process of its own, with another environment.
package child

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const variable = "FREEHOLD_TEST_CHILD"

// Is reports whether this process was started by Run for t.
func Is(t testing.TB) bool { return os.Getenv(variable) == t.Name() }

// Need skips t if its process cannot start itself: on systems without processes, and under an
// emulator.
func Need(t testing.TB) {
	if !starts() {
		t.Skip("there are no processes here")
	}
}

// In runs t in a process of its own, where it calls f. t passes, fails or is skipped as it does
// there.
func In(t testing.TB, f func()) {
	if Is(t) {
		f()
		return
	}
	switch out, errs, err := Run(t); {
	case err == nil && strings.Contains(out, "--- SKIP: "+t.Name()):
		t.Skip(out)
	case err != nil || !strings.Contains(out, "--- PASS: "+t.Name()):
		t.Errorf("the child: %v\n%s%s", err, out, errs)
	}
}

// Run runs t in a process of its own, with env added to its environment, and returns the process's
// standard output and standard error. It skips t as Need does.
func Run(t testing.TB, env ...string) (out, errs string, err error) {
	Need(t)
	var said, complained bytes.Buffer
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+t.Name(), noSleep)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = &said, &complained
	err = cmd.Run()
	return said.String(), complained.String(), err
}

// noSleep keeps the race detector from sleeping for a second when a process ends.
const noSleep = "GORACE=atexit_sleep_ms=0"

var starts = sync.OnceValue(func() bool { return exec.Command(os.Args[0], "-test.list=^$").Run() == nil })
