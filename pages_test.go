package freehold

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// Whether the system took the memory back or refused.
func TestPagesAreZero(t *testing.T) {
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			return vm.ErrNoMemory
		}
		return nil
	})
	defer restore()
	for range 3 {
		b := Must(Pages().Zeroed(100_000, 8))
		if uintptr(unsafe.Pointer(&b[0]))%8192 != 0 {
			t.Error("a block does not begin at a page")
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d is %d", i, b[i])
			}
			b[i] = 1
		}
		Pages().Free(b)
	}
}

func TestPagesGoBackWhenTheyAreFreed(t *testing.T) {
	NeedsPlainBlocks(t)
	b := Must(Pages().Alloc(100_000, 8))
	given := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			given++
		}
		return nil
	})
	Pages().Free(b)
	restore()
	if given == 0 {
		t.Error("nothing was given back")
	}
}
