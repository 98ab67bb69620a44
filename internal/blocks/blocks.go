// Blocks: an array that grows at its end, read without a lock.
//
//	list --> | addr | addr | ... |      on the Go heap, replaced as a whole
//	            |
//	            block: bytes of the parent's memory, zero at first
//
// A reader that knows an index of the array, from an atomic word that was stored after Grow, finds
// its block.

// Package blocks has a list of equal blocks of an allocator's memory.
package blocks

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
)

// LineBytes is the alignment of blocks, and the size of a processor's cache line.
const LineBytes = 64

// A List has blocks. One goroutine at a time may change it, while others call At and Len.
type List struct {
	list  atomic.Pointer[[]uintptr]
	bytes int // of each
}

// Init makes the list an empty one, of blocks of the given bytes.
func (l *List) Init(bytes int) {
	l.bytes = bytes
	l.list.Store(&[]uintptr{})
}

// At returns the address of block i.
func (l *List) At(i uint32) uintptr { return (*l.list.Load())[i] }

// Len returns the number of blocks.
func (l *List) Len() int { return len(*l.list.Load()) }

// Grow adds a block.
func (l *List) Grow(parent freehold.Allocator) error {
	block, err := parent.Zeroed(l.bytes, LineBytes)
	if err != nil {
		return err
	}
	old := *l.list.Load()
	list := append(old[:len(old):len(old)], uintptr(unsafe.Pointer(unsafe.SliceData(block))))
	l.list.Store(&list)
	return nil
}

// Cut returns the blocks beyond the first n to the parent. Nobody may use them any more.
func (l *List) Cut(parent freehold.Allocator, n int) {
	old := *l.list.Load()
	list := old[:n:n]
	l.list.Store(&list)
	for _, addr := range old[n:] {
		parent.Free(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), l.bytes))
	}
}
