// Counter: statistics of an allocator.

package freehold

import "github.com/freehold-go/freehold/internal/arg"

// Counter allocates from another allocator and counts the blocks. It counts
// neither empty blocks nor failed calls.
//
// It is safe for concurrent use if next is. It adds two atomic operations on shared
// words to each call (BenchmarkWrappers), which cost more under contention.
//
// Make one with [NewCounter]. Alloc, Zeroed, Resize and Free of a zero Counter panic.
type Counter struct {
	next Allocator
	account
}

// NewCounter returns a Counter around next. It panics if next is nil. A Counter
// needs no Close.
func NewCounter(next Allocator) *Counter {
	arg.NotNil("NewCounter", "next", next)
	return &Counter{next: next}
}

// Counts returns the current counts. Some may include a call in progress while
// others do not yet. A block counts as live until its Free has returned, so
// with several goroutines PeakBytes may exceed the true peak by the blocks that
// were just being freed.
func (c *Counter) Counts() Counts { return c.counts() }

// Alloc implements [Allocator].
func (c *Counter) Alloc(size, align int) ([]byte, error) {
	b, err := c.next.Alloc(size, align)
	c.replace("Counter.Alloc", 0, len(b))
	return b, err
}

// Zeroed implements [Allocator].
func (c *Counter) Zeroed(size, align int) ([]byte, error) {
	b, err := c.next.Zeroed(size, align)
	c.replace("Counter.Zeroed", 0, len(b))
	return b, err
}

// Resize implements [Allocator]. It changes LiveBytes. A block resized to 0 counts
// as freed. It panics as Free does.
func (c *Counter) Resize(b []byte, size int) ([]byte, bool) {
	c.mustHold("Counter.Resize", len(b))
	r, ok := c.next.Resize(b, size)
	if ok {
		c.replace("Counter.Resize", len(b), len(r))
	}
	return r, ok
}

// Free implements [Allocator]. If next panics, Free counts nothing. It panics, before
// next frees b, if b has more bytes than are live in c, or if c has no live block.
func (c *Counter) Free(b []byte) {
	c.mustHold("Counter.Free", len(b))
	c.next.Free(b)
	c.replace("Counter.Free", len(b), 0)
}

// Owns implements [Owner] by next's Owns. It is false if next is not an Owner.
func (c *Counter) Owns(b []byte) bool { return owns(c.next, b) }

// GoodSize returns next's GoodSize of size, or size if next has none.
func (c *Counter) GoodSize(size int) int { return goodSize(c.next, size) }

func (c *Counter) ownsBy() Allocator { return c.next }
