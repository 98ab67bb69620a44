// Parent: the allocator below an owner.

package owners

import (
	"cmp"
	"strings"
	"sync/atomic"
)

// Traits are a parent's properties that its containers need.
type Traits struct {
	Closed *atomic.Bool // set by the parent's Close; nil if the parent has none
	Solo   bool         // the parent is for one goroutine at a time
	Ends   bool         // all blocks may end at once while the parent is open, as in an arena

	// Collect calls free, which frees blocks of a container that was dropped, and counts the
	// container if free returns true. It returns free's result. If the parent is closed, it does
	// nothing and returns false. If it can, it keeps the parent from closing meanwhile.
	Collect func(free func() bool) bool
}

var traits []func(parent any) (Traits, bool)

var never atomic.Bool

// AddTraits registers a function that returns the traits of one package's allocators, and false for
// other types. Packages call it during initialization.
func AddTraits(f func(parent any) (Traits, bool)) { traits = append(traits, f) }

// TraitsOf returns the traits of a parent, or none for an unknown type. Closed and Collect are
// never nil.
func TraitsOf(parent any) (t Traits) {
	for _, f := range traits {
		var ok bool
		if t, ok = f(parent); ok {
			break
		}
	}
	t.Closed = cmp.Or(t.Closed, &never)
	if closed := t.Closed; t.Collect == nil {
		t.Collect = func(free func() bool) bool { return !closed.Load() && free() }
	}
	return t
}

// AskParent panics if parent is closed, with the parent's message in the name of call. Close of
// an owner that holds parent's memory calls it first: access to the memory would fault
// otherwise.
func AskParent(call string, parent interface {
	Alloc(size, align int) ([]byte, error)
	Free(b []byte)
}) {
	defer func() {
		if p := recover(); p != nil {
			panic(inTheNameOf(call, p))
		}
	}()
	if b, err := parent.Alloc(1, 1); err == nil { // an error shows too that parent is open
		parent.Free(b)
	}
}

// MustHaveParent panics as AskParent does if parent's traits say that it is closed. It allocates
// no block.
func MustHaveParent(call string, parent interface {
	Alloc(size, align int) ([]byte, error)
	Free(b []byte)
}) {
	if TraitsOf(parent).Closed.Load() {
		AskParent(call, parent)
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
