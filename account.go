// Account: counters of a wrapper's blocks.

package freehold

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/arg"
)

// Counts is a snapshot of the blocks of a [Tagged].
type Counts struct {
	Live      int    // live blocks
	LiveBytes int    // sum of their lengths
	PeakBytes int    // maximum of LiveBytes so far
	Allocs    uint64 // blocks allocated so far
	Frees     uint64 // blocks freed so far
}

// An account counts blocks. All of its methods are safe for concurrent use. Call mustHold before
// next frees a block, and replace after next has allocated, resized or freed one.
type account struct {
	bytes  atomic.Int64
	peak   atomic.Int64
	allocs atomic.Uint64
	frees  atomic.Uint64
}

func (a *account) counts() Counts {
	frees := a.frees.Load() // before allocs, so that Live is not negative
	allocs := a.allocs.Load()
	return Counts{
		Live:      int(allocs - frees),
		LiveBytes: int(a.bytes.Load()),
		PeakBytes: int(a.peak.Load()),
		Allocs:    allocs,
		Frees:     frees,
	}
}

// mustHold panics if a cannot have counted a block of size bytes.
func (a *account) mustHold(call string, size int) {
	switch frees := a.frees.Load(); { // before allocs, which has counted the block
	case size == 0:
	case int64(size) > a.bytes.Load():
		tooManyBytes(call, size)
	case frees >= a.allocs.Load():
		tooManyBlocks(call)
	}
}

func tooManyBytes(call string, size int) {
	arg.Panicf(call, "%s, more than this Tagged has handed out: a double free, or a block from elsewhere", arg.Bytes(size))
}

func tooManyBlocks(call string) {
	arg.Panicf(call, "more blocks than this Tagged has handed out: a double free, or a block from elsewhere")
}

// replace counts the change of a block from oldSize to newSize; 0 means no block. If more would be
// freed than is live, it panics and counts nothing, since concurrent calls may all have passed
// mustHold.
func (a *account) replace(call string, oldSize, newSize int) {
	if oldSize == newSize {
		return
	}
	if oldSize == 0 {
		a.allocs.Add(1)
	}
	growth := int64(newSize) - int64(oldSize)
	bytes := a.bytes.Add(growth)
	if bytes < 0 {
		a.bytes.Add(-growth)
		tooManyBytes(call, oldSize)
	}
	for peak := a.peak.Load(); bytes > peak; peak = a.peak.Load() {
		if onPeak != nil {
			onPeak()
		}
		if a.peak.CompareAndSwap(peak, bytes) {
			break
		}
	}
	if newSize == 0 && a.frees.Add(1) > a.allocs.Load() {
		a.frees.Add(^uint64(0))
		a.bytes.Add(-growth)
		tooManyBlocks(call)
	}
}

// onPeak, if not nil, is called before a peak rises. For tests.
var onPeak func()
