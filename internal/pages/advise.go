// Advise: hints to the system about the use of a block.
//
// Some advice persists with the mapping. It splits the mapping, so the block's run is
// marked separate, and is mapped anew when it is freed: see discard.

package pages

import (
	"errors"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// Advise gives the system advice about the whole system pages inside b. If b is in no heap,
// the error is ErrUnsupported. Advice that persists with the mapping is a no-op for a small
// block, which shares its run with others.
func Advise(b []byte, a vm.Advice) error {
	if len(b) == 0 {
		return nil
	}
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	r := Addresses.RegionOf(addr)
	if r == nil {
		return vm.ErrUnsupported
	}
	os := vm.PageBytes()
	from, to := vm.RoundUp(addr, os), (addr+uintptr(len(b)))&^(os-1)
	if from >= to {
		return nil
	}
	if !stays(a) {
		return vm.Advise(from, to-from, a)
	}
	s := r.spanAround(addr)
	if s == nil || s.Kind != LargeRun {
		return nil
	}
	err := vm.Advise(from, to-from, a)
	if !errors.Is(err, vm.ErrUnsupported) {
		s.setSeparate()
	}
	return err
}

// stays reports whether advice persists with the mapping.
func stays(a vm.Advice) bool { return a != vm.WillNeed && a != vm.DontNeed && a != vm.Populate }
