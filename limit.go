// Limit: a wrapper with a maximum of live bytes.

package freehold

import (
	"fmt"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/arg"
)

// Limit allocates from another allocator and limits the sum of the sizes, len(b) in bytes, of its
// live blocks. The sum never exceeds the maximum, even by one byte or for an instant, with any
// number of goroutines. Unlike [HeapOptions].MaxBytes it does not include next's overhead.
//
// It is safe for concurrent use if next is. It adds a compare-and-swap to each call that allocates
// and an atomic add to each call that frees, on one shared word (BenchmarkWrappers). They cost more
// under contention.
//
// Make one with [NewLimit]. Alloc, Zeroed and Free of a zero Limit panic.
type Limit struct {
	next     Allocator
	maxBytes int64
	used     atomic.Int64 // bytes charged; 0 <= used <= maxBytes
}

// NewLimit returns a Limit of maxBytes around next. With 0 it allocates only empty
// blocks. It panics if maxBytes is negative or next is nil. A Limit needs no
// Close.
func NewLimit(next Allocator, maxBytes int) *Limit {
	arg.NotNil("NewLimit", "next", next)
	arg.AtLeast("NewLimit", "maxBytes", maxBytes, 0)
	return &Limit{next: next, maxBytes: int64(maxBytes)}
}

// Used returns the bytes that count against the limit: of live blocks and of calls in progress.
func (l *Limit) Used() int { return int(l.used.Load()) }

// MaxBytes returns the limit in bytes.
func (l *Limit) MaxBytes() int { return int(l.maxBytes) }

// Alloc implements [Allocator]. If the block would exceed the limit, Alloc does not
// call next, and returns an error that says so and matches [ErrOutOfMemory].
func (l *Limit) Alloc(size, align int) ([]byte, error) {
	if !l.charge(size) {
		return nil, l.refusal("Limit.Alloc", size, align)
	}
	ok := false
	defer l.refundUnless(&ok, size)
	b, err := l.next.Alloc(size, align)
	ok = err == nil
	return b, err
}

// Zeroed implements [Allocator], with the errors of Alloc.
func (l *Limit) Zeroed(size, align int) ([]byte, error) {
	if !l.charge(size) {
		return nil, l.refusal("Limit.Zeroed", size, align)
	}
	ok := false
	defer l.refundUnless(&ok, size)
	b, err := l.next.Zeroed(size, align)
	ok = err == nil
	return b, err
}

// Resize implements [Allocator]. It reports false if the growth would exceed the limit. It needs
// room for the difference only; a [Realloc] that copies needs room for both blocks. It panics if it
// would free more bytes than are live in l.
func (l *Limit) Resize(b []byte, size int) (r []byte, ok bool) {
	if size > len(b) {
		growth := size - len(b)
		if !l.charge(growth) {
			return nil, false
		}
		defer l.refundUnless(&ok, growth)
		return l.next.Resize(b, size)
	}
	l.mustHold("Limit.Resize", len(b)-size)
	r, ok = l.next.Resize(b, size)
	if ok {
		l.refund("Limit.Resize", len(b)-size)
	}
	return r, ok
}

// Free implements [Allocator]. The bytes count until next has freed them, and
// still count if next panics. It panics, before next frees b, if b has more bytes
// than are live in l.
func (l *Limit) Free(b []byte) {
	l.mustHold("Limit.Free", len(b))
	l.next.Free(b)
	l.refund("Limit.Free", len(b))
}

// Owns implements [Owner] by next's Owns. It is false if next is not an Owner.
func (l *Limit) Owns(b []byte) bool { return owns(l.next, b) }

// GoodSize returns next's GoodSize of size, or size if next has none.
func (l *Limit) GoodSize(size int) int { return goodSize(l.next, size) }

// charge counts size bytes if they are within the limit, and reports whether they are. It compares
// before it adds: if it added first and undid an excess, concurrent requests that fit could fail. A
// negative size passes, for next to reject.
func (l *Limit) charge(size int) bool {
	n := max(int64(size), 0)
	for {
		used := l.used.Load()
		if n > l.maxBytes-used {
			return false
		}
		if l.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// mustHold panics if fewer than size bytes are charged: freeing a foreign block would raise the
// limit.
func (l *Limit) mustHold(call string, size int) {
	if int64(size) > l.used.Load() {
		l.foreign(call, size)
	}
}

// refund undoes a charge of size bytes. It panics if fewer are charged, since concurrent calls may
// all have passed mustHold.
func (l *Limit) refund(call string, size int) {
	n := max(int64(size), 0)
	if l.used.Add(-n) < 0 {
		l.used.Add(n)
		l.foreign(call, size)
	}
}

func (l *Limit) foreign(call string, size int) {
	arg.Panicf(call, "%s, more than this Limit has handed out: a double free, or a block from elsewhere", arg.Bytes(size))
}

// refundUnless is deferred: it undoes the charge if next has failed or panics.
func (l *Limit) refundUnless(ok *bool, size int) {
	if !*ok {
		l.refund("Limit.Alloc", size)
	}
}

func (l *Limit) ownsBy() Allocator { return l.next }

// refusal returns the error for a block that would exceed the limit. It panics for a
// wrong alignment, which next would reject, and for a zero Limit.
func (l *Limit) refusal(call string, size, align int) error {
	arg.Align(call, align)
	if l.next == nil {
		arg.Panicf(call, "zero value: NewLimit makes a Limit")
	}
	return fmt.Errorf("%w: %s more would exceed the limit of %d", ErrOutOfMemory, arg.Bytes(size), l.maxBytes)
}
