// Parent: the allocator below an owner.

package owners

// AskParent panics with the parent's message if parent is closed: to read what an owner
// keeps in its memory would fault. Owners call it first in Close, if they hold memory.
func AskParent(parent interface {
	Alloc(size, align int) ([]byte, error)
	Free(b []byte)
}) {
	if b, err := parent.Alloc(1, 1); err == nil { // an error shows that it is open, too
		parent.Free(b)
	}
}
