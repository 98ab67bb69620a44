package poison

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/asan"
)

// Each byte is filled, and a write to any is found.
func TestOther(t *testing.T) {
	for size := range 70 {
		b := make([]byte, size+1)[:size]
		FillBytes(b, Fill)
		if n := bytes.Count(b, []byte{Fill}); n != size || Other(b, Fill) != -1 || b[:size+1][size] != 0 {
			t.Errorf("%d of %d bytes are filled, and the next is %#x", n, size, b[:size+1][size])
		}
		for i := size - 1; i >= 0; i-- {
			if b[i]++; Other(b, Fill) != i {
				t.Errorf("byte %d of %d was written, and %d is told", i, size, Other(b, Fill))
			}
		}
	}
}

// FREEHOLD_DEBUG says whether memory is poisoned.
func TestOnInTheEnvironment(t *testing.T) {
	const child = "FREEHOLD_TEST_POISON"
	if os.Getenv(child) != "" {
		fmt.Println("on:", On())
		return
	}
	if exec.Command(os.Args[0], "-test.list=^$").Run() != nil {
		t.Skip("there are no processes here")
	}
	for mode, want := range map[string]bool{"": false, "leak": false, "poison": true, "quarantine": true, "quarantine=1": true, "leak,quarantine=0": false} {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "FREEHOLD_DEBUG="+mode, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.Output()
		if line := fmt.Sprintf("on: %v\n", want || asan.Enabled); err != nil || !strings.Contains(string(out), line) {
			t.Errorf("FREEHOLD_DEBUG=%s: %v, no %q in\n%s", mode, err, line, out)
		}
	}
}

func TestSet(t *testing.T) {
	defer Set(true)()
	if Set(false)(); !On() {
		t.Error("off after restore")
	}
}
