// Limit: the accounting of committed bytes against MaxBytes.
//
// committed counts dirty pages, address tables and metadata. It grows before memory is used:
// the caller charges under mu, then commits and uses the memory, and uncharges if that fails.
// It shrinks after the system has taken memory back. So committed never exceeds the limit, and
// neither does the memory in use.
//
// A heap with a payer charges the payer too. committedByAll is the sum over all heaps, for the
// budget of the whole process.

package pages

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

// ErrOutOfMemory matches every error for lack of memory.
var ErrOutOfMemory = errors.New("freehold: out of memory")

// ErrClosed is the error of a request to a closed heap.
var ErrClosed = errors.New("freehold: heap is closed")

// SlackPages is the most that a request may need besides its own pages: slabs for a span, its
// statuses and a magazine, and tables.
const SlackPages = 4 * SlabBytes / PageBytes

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
func (p *Heap) charge(n uintptr) error {
	if p.MaxBytes != 0 && n > p.MaxBytes-p.committed {
		return limitError{p.Name, n, p.MaxBytes}
	}
	if n == 0 {
		return nil
	}
	if p.Payer != nil {
		if err := p.Payer.Charge(int(n)); err != nil {
			return err
		}
	}
	if p.committed += n; p.committed > p.watermark {
		p.noteWatermark()
	}
	committedByAll.Add(int64(n))
	return nil
}

// mayCharge fails if n pages would exceed the limit even after a purge of all free
// pages. mu is held.
func (p *Heap) mayCharge(n uintptr) error {
	if kept := p.committed - p.dirty*PageBytes; p.MaxBytes != 0 && n*PageBytes > p.MaxBytes-kept {
		return limitError{p.Name, n * PageBytes, p.MaxBytes}
	}
	if p.Payer != nil && n > p.dirty {
		return p.Payer.MayCharge(int((n-p.dirty)*PageBytes), 0)
	}
	return nil
}

// Limit returns the lower of the heap's and its payer's limit in bytes, or 0 without any.
func (p *Heap) Limit() uintptr {
	max := p.MaxBytes
	if p.Payer != nil {
		if n := uintptr(p.Payer.Limit()); n != 0 && (max == 0 || n < max) {
			max = n
		}
	}
	return max
}

// Slack returns the bytes of the payer's limit that spans must leave free for metadata. Without
// memory for magazines, allocation would be slow.
func (p *Heap) Slack() uintptr {
	const share, most = 16, 1 << 20
	if p.Payer == nil {
		return 0
	}
	return min(p.Limit()/share, most)
}

// leavesSlack fails if a span of n pages would leave less than Slack. mu is held.
func (p *Heap) leavesSlack(n uintptr) error {
	if p.Payer == nil || n <= p.dirty {
		return nil
	}
	return p.Payer.MayCharge(int((n-p.dirty)*PageBytes), int(p.Slack()))
}

// CommittedNow returns committed.
func (p *Heap) CommittedNow() uintptr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committed
}

// uncharge subtracts n bytes, after memory went back to the system or a charge was not used. mu
// is held.
func (p *Heap) uncharge(n uintptr) {
	p.committed -= n
	committedByAll.Add(-int64(n))
	if p.Payer != nil && n != 0 {
		p.Payer.Refund(int(n))
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
