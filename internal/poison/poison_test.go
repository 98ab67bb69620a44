package poison

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/test/child"
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
	if child.Is(t) {
		fmt.Println("on:", On())
		return
	}
	for mode, want := range map[string]bool{"": false, "leak": false, "poison": true, "quarantine": true, "quarantine=4096": true, "leak,quarantine=1": false} {
		out, _, err := child.Run(t, "FREEHOLD_DEBUG="+mode)
		if line := fmt.Sprintf("on: %v\n", want || asan.Enabled); err != nil || !strings.Contains(out, line) {
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
