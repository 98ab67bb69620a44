package monitor

import (
	"os"
	"os/exec"
	"testing"
)

// A program whose environment has the variable from elsewhere is no monitor.
func TestVariableOfAnotherProcess(t *testing.T) {
	for _, value := range []string{"1", "x", "-1"} {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), variable+"="+value)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("%s=%s: %v, %q", variable, value, err, out)
		}
	}
}
