// Parent: the allocator below an owner.

package owners

import (
	"strings"
	"sync/atomic"
)

// flags are functions of the packages with allocators. Each returns the flag that Close of such an
// allocator sets, or nil for another type.
var flags []func(parent any) *atomic.Bool

var never atomic.Bool

// AddFlags adds a function to those that ClosedFlag asks. Packages call it when they initialize.
func AddFlags(f func(parent any) *atomic.Bool) { flags = append(flags, f) }

// ClosedFlag returns a flag that is set once parent is closed, or one that is never set if parent has
// none.
func ClosedFlag(parent any) *atomic.Bool {
	for _, flag := range flags {
		if is := flag(parent); is != nil {
			return is
		}
	}
	return &never
}

// AskParent panics if parent is closed, with the parent's message in the name of call. An owner
// that holds memory of parent calls it first in Close: its memory would fault otherwise.
func AskParent(call string, parent interface {
	Alloc(size, align int) ([]byte, error)
	Free(b []byte)
}) {
	defer func() {
		if p := recover(); p != nil {
			panic(inTheNameOf(call, p))
		}
	}()
	if b, err := parent.Alloc(1, 1); err == nil { // an error shows that it is open, too
		parent.Free(b)
	}
}

// inTheNameOf replaces the name of the call in a panic message of this module. It returns other
// panics as they are.
func inTheNameOf(call string, p any) any {
	message, _ := p.(string)
	message, ok := strings.CutPrefix(message, "freehold: ")
	if _, what, named := strings.Cut(message, ": "); ok && named {
		return "freehold: " + call + ": " + what
	}
	return p
}
