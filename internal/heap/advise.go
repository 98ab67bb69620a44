// Advise: telling the system how a block is used.
//
// Some advice stays with the mapping, not with the pages. A block that got such
// advice has a mapping apart from its neighbours', and when it is freed the run
// is mapped anew: see discard.

package heap

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// Advise passes advice about the whole system pages inside b on. It reports
// ErrUnsupported for memory that is no heap's. Advice that stays with the
// mapping is a no-op for a small block, whose span others share.
func Advise(b []byte, a vm.Advice) error {
	if len(b) == 0 {
		return nil
	}
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	r := addresses.regionOf(addr)
	if r == nil {
		return vm.ErrUnsupported
	}
	os := vm.PageBytes()
	from, to := roundUp(addr, os), (addr+uintptr(len(b)))&^(os-1)
	if from >= to {
		return nil
	}
	if !stays(a) {
		return vm.Advise(from, to-from, a)
	}
	s := r.spanAround(addr)
	if s == nil || s.kind != largeRun {
		return nil
	}
	err := vm.Advise(from, to-from, a)
	if !errors.Is(err, vm.ErrUnsupported) {
		s.setSeparate()
	}
	return err
}

// stays reports whether advice outlives the contents of the pages.
func stays(a vm.Advice) bool { return a != vm.WillNeed && a != vm.DontNeed }

// setSeparate notes that the run's mapping is not its neighbours'. Goroutines may
// advise the parts of one block at once, without the heap's lock.
func (s *span) setSeparate() { atomic.StoreUint32(&s.separate, 1) }
