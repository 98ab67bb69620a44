// Limit: what a heap may hold of the system, and what it does.

package heap

import "fmt"

// charge counts n bytes about to be committed against the limit. mu is held.
func (p *pageHeap) charge(n uintptr) error {
	if p.maxBytes != 0 && n > p.maxBytes-p.committed {
		return limitError{p.name, n, p.maxBytes}
	}
	p.committed += n
	return nil
}

// mayCharge reports whether n pages could be charged if all free ones, those that
// a purge is at work on too, were given back. mu is held.
func (p *pageHeap) mayCharge(n uintptr) error {
	if kept := p.committed - (p.dirty+p.purging)*pageBytes; p.maxBytes != 0 && n*pageBytes > p.maxBytes-kept {
		return limitError{p.name, n * pageBytes, p.maxBytes}
	}
	return nil
}

// held returns what counts against the limit.
func (p *pageHeap) held() uintptr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committed
}

func (p *pageHeap) uncharge(n uintptr) { p.committed -= n }

// limitError says that a limit was reached; it matches ErrOutOfMemory.
type limitError struct {
	heap string
	n    uintptr
	max  uintptr
}

func (e limitError) Error() string {
	return fmt.Sprintf("%v: heap %q: %d bytes more would pass the limit of %d", ErrOutOfMemory, e.heap, e.n, e.max)
}

func (e limitError) Unwrap() error { return ErrOutOfMemory }
