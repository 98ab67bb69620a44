// Counter: statistics of an allocator.

package freehold

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/arg"
)

// Counter allocates from another allocator and counts the blocks. It counts
// neither empty blocks nor failed calls.
//
// It is safe for concurrent use if next is. It adds two atomic operations on shared
// words to each call (BenchmarkWrappers), which cost more under contention.
//
// Make one with [NewCounter]. Alloc, Zeroed, Resize and Free of a zero Counter panic.
type Counter struct {
	next   Allocator
	bytes  atomic.Int64
	peak   atomic.Int64
	allocs atomic.Uint64
	frees  atomic.Uint64
}

// Counts is a snapshot of a [Counter].
type Counts struct {
	Live      int    // live blocks
	LiveBytes int    // sum of their lengths
	PeakBytes int    // maximum of LiveBytes so far
	Allocs    uint64 // blocks allocated so far
	Frees     uint64 // blocks freed so far
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
func (c *Counter) Counts() Counts {
	frees := c.frees.Load() // before allocs, so that Live is not negative
	allocs := c.allocs.Load()
	return Counts{
		Live:      int(allocs - frees),
		LiveBytes: int(c.bytes.Load()),
		PeakBytes: int(c.peak.Load()),
		Allocs:    allocs,
		Frees:     frees,
	}
}

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

// mustHold panics if a block of size bytes cannot be one of c's.
func (c *Counter) mustHold(call string, size int) {
	switch frees := c.frees.Load(); { // before allocs, which has counted the block
	case size == 0:
	case int64(size) > c.bytes.Load():
		tooManyBytes(call, size)
	case frees >= c.allocs.Load():
		tooManyBlocks(call)
	}
}

func tooManyBytes(call string, size int) {
	arg.Panicf(call, "%s, more than this Counter has handed out: a double free, or a block from elsewhere", arg.Bytes(size))
}

func tooManyBlocks(call string) {
	arg.Panicf(call, "more blocks than this Counter has handed out: a double free, or a block from elsewhere")
}

// replace counts the change of a block from oldSize to newSize, where 0 means no
// block. If more would be freed than is live, it panics and counts nothing: calls at
// the same moment may all have passed mustHold.
func (c *Counter) replace(call string, oldSize, newSize int) {
	if oldSize == newSize {
		return
	}
	if oldSize == 0 {
		c.allocs.Add(1)
	}
	growth := int64(newSize) - int64(oldSize)
	bytes := c.bytes.Add(growth)
	if bytes < 0 {
		c.bytes.Add(-growth)
		tooManyBytes(call, oldSize)
	}
	for peak := c.peak.Load(); bytes > peak; peak = c.peak.Load() {
		if onPeak != nil {
			onPeak()
		}
		if c.peak.CompareAndSwap(peak, bytes) {
			break
		}
	}
	if newSize == 0 && c.frees.Add(1) > c.allocs.Load() {
		c.frees.Add(^uint64(0))
		c.bytes.Add(-growth)
		tooManyBlocks(call)
	}
}

// onPeak is called before a peak rises, for tests; nil otherwise.
var onPeak func()

func (c *Counter) ownsBy() Allocator { return c.next }
