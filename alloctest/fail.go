// Failing allocators: running out of memory at a chosen call.

package alloctest

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// FailAfter returns an allocator that calls a until n allocations have succeeded.
// Later allocations fail with an error that matches [freehold.ErrOutOfMemory]. An
// allocation is an Alloc, a Zeroed, or a Resize that grows a block; the latter
// fails by reporting false. Empty blocks, Free and a Resize that shrinks always
// go to a.
//
// Run the operation under test with n = 0, 1, 2, … until it succeeds: then each of
// its allocations has failed once, along with all later ones. The allocator is
// safe for concurrent use if a is. A negative n panics.
func FailAfter(a freehold.Allocator, n int) freehold.Allocator {
	return newFailing("FailAfter", a, n, false)
}

// FailOnce is like FailAfter, but only one Alloc or Zeroed fails, so the cleanup or
// retry of the operation under test can allocate. A Resize that reports false does
// not count as the failure, since a copy follows it.
func FailOnce(a freehold.Allocator, n int) freehold.Allocator {
	return newFailing("FailOnce", a, n, true)
}

// failing implements FailAfter and FailOnce.
type failing struct {
	next freehold.Allocator
	n    int
	once bool
	left atomic.Int64 // allocations that may still succeed
}

func newFailing(call string, a freehold.Allocator, n int, once bool) freehold.Allocator {
	arg.NotNil("alloctest."+call, "a", a)
	arg.AtLeast("alloctest."+call, "n", n, 0)
	f := &failing{next: a, n: n, once: once}
	f.left.Store(int64(n))
	return f
}

// Alloc implements [freehold.Allocator].
func (f *failing) Alloc(size, align int) (b []byte, err error) {
	return f.alloc("Alloc", f.next.Alloc, size, align)
}

// Zeroed implements [freehold.Allocator].
func (f *failing) Zeroed(size, align int) (b []byte, err error) {
	return f.alloc("Zeroed", f.next.Zeroed, size, align)
}

func (f *failing) alloc(call string, next func(size, align int) ([]byte, error), size, align int) (b []byte, err error) {
	if size <= 0 {
		return next(size, align)
	}
	if !f.take() {
		arg.Align(prefix+call, align)
		if f.once {
			f.left.Store(math.MaxInt64 / 2)
		}
		return nil, fmt.Errorf("%w: alloctest fails the allocation of %s after %d others", freehold.ErrOutOfMemory, arg.Bytes(size), f.n)
	}
	defer func() {
		if b == nil { // next failed, or panicked
			f.left.Add(1)
		}
	}()
	return next(size, align)
}

// Resize implements [freehold.Allocator].
func (f *failing) Resize(b []byte, size int) (r []byte, ok bool) {
	if size <= len(b) {
		return f.next.Resize(b, size)
	}
	if !f.take() {
		return nil, false
	}
	defer func() {
		if !ok {
			f.left.Add(1)
		}
	}()
	return f.next.Resize(b, size)
}

// Free implements [freehold.Allocator].
func (f *failing) Free(b []byte) { f.next.Free(b) }

// take counts an allocation and reports whether it may succeed.
func (f *failing) take() bool {
	for {
		left := f.left.Load()
		if left <= 0 {
			return false
		}
		if f.left.CompareAndSwap(left, left-1) {
			return true
		}
	}
}
