// Explain: which block a fault hit.

package track

import (
	"errors"
	"unsafe"

	"github.com/freehold-go/freehold/internal/guardlog"
)

// Explain returns what is known of the guarded block that a fault hit: what and where in a
// line, and then the stacks of the block's allocation and Free. err is the value of recover
// in a goroutine that called debug.SetPanicOnFault, or an error that wraps it. Explain
// reports false if it is something else, or if no guarded block is at the address.
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

// ExplainPointer is [Explain] for a pointer, such as one for which a system call returned
// EFAULT: these find an inaccessible page without a fault.
func ExplainPointer(p unsafe.Pointer) (string, bool) { return explainAt(uintptr(p)) }

func explainAt(addr uintptr) (string, bool) {
	b, found := guardlog.Find(addr)
	if !found {
		return "", false
	}
	return b.Describe(addr) + "\n" + b.Stacks(), true
}
