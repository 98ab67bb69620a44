// Locked: a wrapper with a mutex.

package freehold

import (
	"sync"

	"github.com/freehold-go/freehold/internal/arg"
)

// Locked serializes the calls of another allocator with a mutex. It is safe for concurrent use as
// long as all users of that allocator go through it. A [Heap] does not need it.
//
// It adds a mutex to each call (BenchmarkWrappers), and the wait under contention.
//
// Make one with [NewLocked]. Alloc, Zeroed, Resize and Free of a zero Locked panic.
type Locked struct {
	mu   sync.Mutex // held during each call of next
	next Allocator
}

// NewLocked returns a Locked around next. It panics if next is nil. A Locked needs
// no Close.
func NewLocked(next Allocator) *Locked {
	arg.NotNil("NewLocked", "next", next)
	return &Locked{next: next}
}

// Alloc implements [Allocator].
func (l *Locked) Alloc(size, align int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Alloc(size, align)
}

// Zeroed implements [Allocator].
func (l *Locked) Zeroed(size, align int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Zeroed(size, align)
}

// Resize implements [Allocator].
func (l *Locked) Resize(b []byte, size int) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Resize(b, size)
}

// Free implements [Allocator].
func (l *Locked) Free(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next.Free(b)
}

// Owns implements [Owner] by next's Owns. It is false if next is not an Owner.
func (l *Locked) Owns(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return owns(l.next, b)
}

// GoodSize returns next's GoodSize of size, or size if next has none.
func (l *Locked) GoodSize(size int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return goodSize(l.next, size)
}

func (l *Locked) ownsBy() Allocator { return l.next }
