// Limit: what counts against MaxBytes.
//
// committed counts dirty pages, address tables and metadata. It grows before memory
// is used: the caller charges under mu, then commits and uses it, and takes the charge
// back if that fails. It shrinks after the system has taken memory back. So committed
// never exceeds the limit.
//
// A heap with a payer charges that too. The sum over all heaps is counted beside it, for
// those who budget the whole process.

package heap

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

// ErrOutOfMemory is matched by every error that says there is no memory.
var ErrOutOfMemory = errors.New("freehold: out of memory")

// errClosed is the error of a request to a heap that is closed.
var errClosed = errors.New("freehold: heap is closed")

// slackPages is what a request may need besides its pages: slabs for a span, its statuses and
// a magazine, and tables.
const slackPages = 4 * slabBytes / pageBytes

// committedByAll is the sum of committed over all heaps.
var committedByAll atomic.Int64

// OffHeap returns the bytes that all heaps have committed outside of Go's heap. It is one
// load. Where off-heap memory is Go's own, as in race builds, it is 0: the runtime counts it.
func OffHeap() int64 {
	if vm.GoBacked {
		return 0
	}
	return committedByAll.Load()
}

// charge counts n bytes that are about to be committed, or fails with a limitError
// and counts nothing. mu is held.
func (p *pageHeap) charge(n uintptr) error {
	if p.maxBytes != 0 && n > p.maxBytes-p.committed {
		return limitError{p.name, n, p.maxBytes}
	}
	if n == 0 {
		return nil
	}
	if p.payer != nil {
		if err := p.payer.Charge(int(n)); err != nil {
			return err
		}
	}
	p.committed += n
	committedByAll.Add(int64(n))
	return nil
}

// mayCharge fails if n pages would exceed the limit even after a purge of all free
// pages. mu is held.
func (p *pageHeap) mayCharge(n uintptr) error {
	if kept := p.committed - p.dirty*pageBytes; p.maxBytes != 0 && n*pageBytes > p.maxBytes-kept {
		return limitError{p.name, n * pageBytes, p.maxBytes}
	}
	if p.payer != nil && n > p.dirty {
		return p.payer.MayCharge(int((n-p.dirty)*pageBytes), 0)
	}
	return nil
}

// limit returns the bytes that the heap may have at most, its payer's limit included; 0 if
// there is no limit.
func (p *pageHeap) limit() uintptr {
	max := p.maxBytes
	if p.payer != nil {
		if n := uintptr(p.payer.Limit()); n != 0 && (max == 0 || n < max) {
			max = n
		}
	}
	return max
}

// slack returns the bytes of the payer's limit that spans leave free, for metadata: without
// memory for magazines, blocks would be slow.
func (p *pageHeap) slack() uintptr {
	const share, most = 16, 1 << 20
	if p.payer == nil {
		return 0
	}
	return min(p.limit()/share, most)
}

// leavesSlack fails if a span of n pages would leave too little. mu is held.
func (p *pageHeap) leavesSlack(n uintptr) error {
	if p.payer == nil || n <= p.dirty {
		return nil
	}
	return p.payer.MayCharge(int((n-p.dirty)*pageBytes), int(p.slack()))
}

// committedNow returns committed.
func (p *pageHeap) committedNow() uintptr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committed
}

// uncharge takes back a charge, or counts memory that was given back. mu is held.
func (p *pageHeap) uncharge(n uintptr) {
	p.committed -= n
	committedByAll.Add(-int64(n))
	if p.payer != nil && n != 0 {
		p.payer.Refund(int(n))
	}
}

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
