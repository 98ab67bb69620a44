// Locked: a wrapper with a mutex.

package freehold

import (
	"sync"

	"github.com/freehold-go/freehold/internal/arg"
)

// NewLocked returns an allocator that serializes the calls of next with a mutex, so that it is safe
// for concurrent use as long as all users of next go through it. A [Heap] does not need it. Owns is
// false if next is not an [Owner].
//
// NewLocked panics if next is nil. The allocator needs no Close. It adds a mutex to each call
// (BenchmarkWrappers), and the wait under contention.
func NewLocked(next Allocator) Owner {
	arg.NotNil("NewLocked", "next", next)
	return &locked{next: next}
}

type locked struct {
	mu   sync.Mutex // held during each call of next
	next Allocator
}

func (l *locked) Alloc(size, align int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Alloc(size, align)
}

func (l *locked) Zeroed(size, align int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Zeroed(size, align)
}

func (l *locked) Resize(b []byte, size int) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Resize(b, size)
}

func (l *locked) Free(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next.Free(b)
}

func (l *locked) Owns(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return owns(l.next, b)
}

// GoodSize returns next's GoodSize of size, or size if next has none.
func (l *locked) GoodSize(size int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return goodSize(l.next, size)
}

func (l *locked) ownsBy() Allocator { return l.next }
