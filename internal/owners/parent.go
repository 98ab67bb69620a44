// Parent: the allocator below an owner.

package owners

import "strings"

// AskParent panics if parent is closed, with its message in the name of call: to read what an owner
// keeps in its memory would fault. Owners call it first in Close, if they hold memory.
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

// inTheNameOf returns a panic of this module's with call in place of the name it has. It leaves others
// as they are.
func inTheNameOf(call string, p any) any {
	message, _ := p.(string)
	message, ok := strings.CutPrefix(message, "freehold: ")
	if _, what, named := strings.Cut(message, ": "); ok && named {
		return "freehold: " + call + ": " + what
	}
	return p
}
