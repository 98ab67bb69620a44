package budget

import (
	"os"
	"path/filepath"
	"testing"
)

// The kernel takes the trigger where it has PSI, from anyone, and stop ends the wait.
func TestWatchStallsOfTheKernel(t *testing.T) {
	if _, ok := stallTotal(os.DirFS("/"), machinePressure); !ok {
		t.Skip("the kernel has no PSI")
	}
	for range 3 {
		stop, err := watchStalls("/"+machinePressure, func() {})
		if err != nil {
			t.Skipf("no trigger: %v", err)
		}
		stop()
	}
}

func TestWatchStallsWithoutTheKernel(t *testing.T) {
	if _, err := watchStalls(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("no error for a file that is missing")
	}
	// A file that takes the trigger and then says that nothing can be waited for.
	file := filepath.Join(t.TempDir(), "memory.pressure")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stop, err := watchStalls(file, func() {})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if text, _ := os.ReadFile(file); string(text) != "some 100000 2000000\x00" {
		t.Errorf("the trigger is %q", text)
	}
}
