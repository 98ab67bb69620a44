// Limit: what counts against MaxBytes.
//
// committed counts dirty pages, address tables and metadata. It grows before memory
// is used: the caller charges under mu, then commits and uses it, and takes the charge
// back if that fails. It shrinks after the system has taken memory back. So committed
// never exceeds the limit.

package heap

import "fmt"

// charge counts n bytes that are about to be committed, or fails with a limitError
// and counts nothing. mu is held.
func (p *pageHeap) charge(n uintptr) error {
	if p.maxBytes != 0 && n > p.maxBytes-p.committed {
		return limitError{p.name, n, p.maxBytes}
	}
	p.committed += n
	return nil
}

// mayCharge fails if n pages would exceed the limit even after a purge of all free
// pages. mu is held.
func (p *pageHeap) mayCharge(n uintptr) error {
	if kept := p.committed - p.dirty*pageBytes; p.maxBytes != 0 && n*pageBytes > p.maxBytes-kept {
		return limitError{p.name, n * pageBytes, p.maxBytes}
	}
	return nil
}

// held returns committed.
func (p *pageHeap) held() uintptr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committed
}

// uncharge takes back a charge, or counts memory that was given back. mu is held.
func (p *pageHeap) uncharge(n uintptr) { p.committed -= n }

// limitError says that a request would exceed a limit. It matches ErrOutOfMemory.
type limitError struct {
	heap string
	n    uintptr
	max  uintptr
}

func (e limitError) Error() string {
	return fmt.Sprintf("%v: heap %q: %d bytes more would exceed the limit of %d", ErrOutOfMemory, e.heap, e.n, e.max)
}

func (e limitError) Unwrap() error { return ErrOutOfMemory }
