// Scope: a wrapper that frees the remaining blocks when it ends.
//
//	Alloc --> live --Free--> gone
//	            +----Close--> gone

package freehold

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// Scope allocates from another allocator, and Close frees all blocks that are still live. So a
// block that a query, a request or a test forgets to free is freed with it. Unlike an arena, a
// Scope also frees single blocks before its end, and next reuses them.
//
// It is safe for concurrent use if next is, except Close. It keeps the address and the length of
// each live block in a map on the Go heap, under a mutex. That takes about 40 bytes a block, and
// costs more than a [Heap]'s Alloc: use it for large blocks, or for few.
//
// Make one with [NewScope]; calls of the zero Scope that allocate panic.
type Scope struct {
	next   Allocator
	closed atomic.Bool

	mu   sync.Mutex      // guards live
	live map[uintptr]int // lengths by address
}

// NewScope returns an empty Scope around next. It panics if next is nil.
func NewScope(next Allocator) *Scope {
	arg.NotNil("NewScope", "next", next)
	return &Scope{next: next, live: map[uintptr]int{}}
}

// Alloc implements [Allocator].
func (s *Scope) Alloc(size, align int) ([]byte, error) {
	s.mustBeOpen("Scope.Alloc")
	return s.keep(s.next.Alloc(size, align))
}

// Zeroed implements [Allocator].
func (s *Scope) Zeroed(size, align int) ([]byte, error) {
	s.mustBeOpen("Scope.Zeroed")
	return s.keep(s.next.Zeroed(size, align))
}

// Resize implements [Allocator]. It panics as Free does.
func (s *Scope) Resize(b []byte, size int) ([]byte, bool) {
	const call = "Scope.Resize"
	s.mustBeOpen(call)
	if len(b) == 0 {
		return s.next.Resize(b, size)
	}
	s.forget(call, b)
	ok := false
	defer func() {
		if !ok { // b is unchanged
			s.keep(b, nil)
		}
	}()
	r, ok := s.next.Resize(b, size)
	if ok {
		s.keep(r, nil)
	}
	return r, ok
}

// Free implements [Allocator]. It panics if b is not a live block of this Scope, also after Close.
func (s *Scope) Free(b []byte) {
	const call = "Scope.Free"
	s.mustBeOpen(call)
	if len(b) > 0 {
		s.forget(call, b)
	}
	s.next.Free(b)
}

// Owns implements [Owner] by next's Owns. It is false if next is not an Owner.
func (s *Scope) Owns(b []byte) bool { return owns(s.next, b) }

// GoodSize returns next's GoodSize of size, or size if next has none.
func (s *Scope) GoodSize(size int) int { return goodSize(s.next, size) }

// Live returns the number of blocks that Close would free.
func (s *Scope) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// Close frees the blocks that are still live, and returns their number: 0 if none was forgotten. No
// other call may be under way, and nothing may use the blocks any more. Later calls that allocate
// or free panic; Close then returns 0. Close the Scope before next.
func (s *Scope) Close() (freed int) {
	if s.closed.Swap(true) {
		return 0
	}
	s.mu.Lock()
	live := s.live
	s.live = nil
	s.mu.Unlock()
	for addr, n := range live {
		s.next.Free(unsafe.Slice((*byte)(pointer(addr)), n))
	}
	return len(live)
}

func (s *Scope) mustBeOpen(call string) {
	switch {
	case s.next == nil:
		arg.Panicf(call, "zero value: NewScope makes one")
	case s.closed.Load():
		arg.Panicf(call, "the scope is closed")
	}
}

// keep records a block that next has allocated, unless it is empty, and returns its arguments.
func (s *Scope) keep(b []byte, err error) ([]byte, error) {
	if err == nil && len(b) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.live[addrOf(b)] = len(b)
	}
	return b, err
}

// forget removes the record of a block. It comes before next's Free, after which next may give the
// same address to another call.
func (s *Scope) forget(call string, b []byte) {
	addr := addrOf(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.live[addr]
	switch {
	case !ok:
		arg.Panicf(call, "%#x is no live block of this scope", addr)
	case n != len(b):
		arg.Panicf(call, "%d bytes of a block of %d", len(b), n)
	}
	delete(s.live, addr)
}

// addrOf returns the address of b, which is not empty.
func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func (s *Scope) ownsBy() Allocator { return s.next }
