// Parent: the allocator below an owner.

package owners

import "strings"

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
