// Advise: telling the system how a block is used.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// Advise passes advice about the whole system pages inside b on. It reports
// ErrUnsupported for memory that is no heap's.
func Advise(b []byte, a vm.Advice) error {
	if len(b) == 0 {
		return nil
	}
	addresses.init()
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if addresses.regionOf(addr) == nil {
		return vm.ErrUnsupported
	}
	os := vm.PageBytes()
	from, to := roundUp(addr, os), (addr+uintptr(len(b)))&^(os-1)
	if from >= to {
		return nil
	}
	return vm.Advise(from, to-from, a)
}
