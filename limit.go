// Limit: no more than so many bytes at once.

package freehold

import (
	"fmt"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/arg"
)

// Limit hands out the blocks of another allocator as long as their sizes, len(b)
// in bytes, sum up to no more than a maximum. The sum never passes it, not by
// one byte and not for an instant, under any number of goroutines. What next
// needs beside the blocks is not counted; [HeapOptions].MaxBytes counts that.
//
// It is safe for concurrent use if next is. It adds a compare-and-swap to each
// call that allocates and an atomic add to each that frees, both on one shared
// word: 4 ns a call alone (BenchmarkWrappers), more when processors contend for it.
type Limit struct {
	next     Allocator
	maxBytes int64
	used     atomic.Int64 // bytes charged; 0 <= used <= maxBytes
}

// NewLimit returns a Limit of maxBytes around next. At 0 only empty blocks are
// handed out; it panics if maxBytes is negative or next is nil. Nothing needs to be
// closed.
func NewLimit(next Allocator, maxBytes int) *Limit {
	arg.NotNil("NewLimit", "next", next)
	arg.AtLeast("NewLimit", "maxBytes", maxBytes, 0)
	return &Limit{next: next, maxBytes: int64(maxBytes)}
}

// Used returns the bytes that count against the limit now: those of the live
// blocks, and of calls in progress.
func (l *Limit) Used() int { return int(l.used.Load()) }

// MaxBytes returns the limit in bytes.
func (l *Limit) MaxBytes() int { return int(l.maxBytes) }

// Alloc implements [Allocator]. Where the limit would be passed the error matches
// [ErrOutOfMemory] and says so; next is not asked then.
func (l *Limit) Alloc(size, align int) ([]byte, error) {
	if !l.charge(size) {
		return nil, l.refusal(size)
	}
	ok := false
	defer l.settle(&ok, size)
	b, err := l.next.Alloc(size, align)
	ok = err == nil
	return b, err
}

// Zeroed implements [Allocator], with the errors of Alloc.
func (l *Limit) Zeroed(size, align int) ([]byte, error) {
	if !l.charge(size) {
		return nil, l.refusal(size)
	}
	ok := false
	defer l.settle(&ok, size)
	b, err := l.next.Zeroed(size, align)
	ok = err == nil
	return b, err
}

// Resize implements [Allocator]. Growth that would pass the limit reports false.
// Realloc by copy needs room for both blocks; Resize only for the difference.
func (l *Limit) Resize(b []byte, size int) (r []byte, ok bool) {
	if size > len(b) {
		growth := size - len(b)
		if !l.charge(growth) {
			return nil, false
		}
		defer l.settle(&ok, growth)
		return l.next.Resize(b, size)
	}
	r, ok = l.next.Resize(b, size)
	if ok {
		l.refund("Limit.Resize", len(b)-size)
	}
	return r, ok
}

// Free implements [Allocator]. The bytes count until next has taken them back,
// and if next panics they go on counting. It panics if l has not handed out as
// many bytes.
func (l *Limit) Free(b []byte) {
	l.next.Free(b)
	l.refund("Limit.Free", len(b))
}

// Owns implements [Owner] by asking next; it is false if next is no Owner.
func (l *Limit) Owns(b []byte) bool { return owns(l.next, b) }

// GoodSize returns next's GoodSize of size, or size if next has none.
func (l *Limit) GoodSize(size int) int { return GoodSize(l.next, size) }

// charge counts size bytes and reports whether they were within the limit. It
// compares before it adds: adding first and undoing what is too much would
// make others fail whose requests fit. A negative size is for next to refuse.
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

// refund takes back what charge has counted. It panics if that is more than
// what is out: a block that the Limit did not hand out would raise it.
func (l *Limit) refund(call string, size int) {
	n := max(int64(size), 0)
	if l.used.Add(-n) < 0 {
		l.used.Add(n)
		arg.Panicf(call, "%d bytes, more than this Limit has handed out", size)
	}
}

// settle is deferred: it takes the charge back unless next has given what it
// was for. Then next has failed, or it panics.
func (l *Limit) settle(given *bool, size int) {
	if !*given {
		l.refund("Limit.Alloc", size)
	}
}

func (l *Limit) ownsBy() Allocator { return l.next }

func (l *Limit) refusal(size int) error {
	return fmt.Errorf("%w: %d bytes would pass the limit of %d", ErrOutOfMemory, size, l.maxBytes)
}
