//go:build !race

package heap

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/vm"
)

// Clearing memory that was never used would make it resident.
func TestZeroedLargeBlockClearsOnlyWhatWasUsed(t *testing.T) {
	h := newHeap(t, Options{})
	used := alloc(t, h, 1<<20)
	fill(used, 1)
	h.Free(used)
	b, err := h.Alloc(3<<20, 8, true)
	if err != nil {
		t.Fatal(err)
	}
	if addrOf(b) != addrOf(used) {
		t.Fatal("the block does not begin with used memory")
	}
	pages := make([]byte, len(b)/int(vm.PageBytes()))
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, addrOf(b), uintptr(len(b)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Skip("the system does not say what is resident: ", errno)
	}
	resident := 0
	for _, p := range pages {
		resident += int(p&1) * int(vm.PageBytes())
	}
	if resident > 1<<20 {
		t.Errorf("%d bytes are resident, and 1 MiB was used", resident)
	}
	if !allSet(b, 0) {
		t.Error("not zero")
	}
}
