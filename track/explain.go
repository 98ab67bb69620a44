// Explain: which block a fault hit.

package track

import (
	"errors"
	"unsafe"

	"github.com/freehold-go/freehold/internal/guardlog"
)

// Explain describes the fault in a guarded block: a line names the mistake and the place, and the
// stacks of the block's allocation and Free follow. err is the value of recover in a goroutine that
// called debug.SetPanicOnFault, or an error that wraps it. Explain reports false if err is anything
// else, or if no guarded block is at the address.
func Explain(err any) (string, bool) {
	e, ok := err.(error)
	if !ok {
		return "", false
	}
	var fault interface{ Addr() uintptr }
	if !errors.As(e, &fault) {
		return "", false
	}
	return explainAt(fault.Addr())
}

// ExplainPointer is [Explain] for a pointer. A system call that finds an inaccessible page returns
// EFAULT without a fault; pass its argument.
func ExplainPointer(p unsafe.Pointer) (string, bool) { return explainAt(uintptr(p)) }

func explainAt(addr uintptr) (string, bool) {
	b, found := guardlog.Find(addr)
	if !found {
		return "", false
	}
	return b.Describe(addr) + "\n" + b.Stacks(), true
}
