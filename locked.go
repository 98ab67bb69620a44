// Locked: one mutex around an allocator.

package freehold

import "sync"

// Locked returns an allocator that is safe for concurrent use: it makes the calls
// of a one at a time. If a is an [Owner] then so is the result. It is safe only
// as long as a is used in no other way. A [Heap] and [Pages] do not need it.
//
// It adds one mutex to each call, 5 ns alone (BenchmarkWrappers), and the wait for
// others.
func Locked(a Allocator) Allocator {
	l := &locked{next: a}
	if o, ok := a.(Owner); ok {
		return lockedOwner{locked: l, owner: o}
	}
	return l
}

// A locked allocator; mu is held during each call of next.
type locked struct {
	mu   sync.Mutex
	next Allocator
}

// lockedOwner is a locked allocator whose next is an Owner.
type lockedOwner struct {
	*locked
	owner Owner // next
}

// Owns implements [Owner].
func (l lockedOwner) Owns(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owner.Owns(b)
}

// Alloc implements [Allocator].
func (l *locked) Alloc(size, align int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Alloc(size, align)
}

// Zeroed implements [Allocator].
func (l *locked) Zeroed(size, align int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Zeroed(size, align)
}

// Resize implements [Allocator].
func (l *locked) Resize(b []byte, size int) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next.Resize(b, size)
}

// Free implements [Allocator].
func (l *locked) Free(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next.Free(b)
}

// GoodSize returns next's GoodSize of size, or size if next has none.
func (l *locked) GoodSize(size int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return GoodSize(l.next, size)
}
