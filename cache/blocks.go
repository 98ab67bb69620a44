// Blocks: an array that grows at its end, read without a lock.
//
//	list --> | addr | addr | ... |      on the Go heap, replaced as a whole
//	            |
//	            block: bytes of the parent's memory, zero at first
//
// Who knows an index of the array, from an atomic word that was stored after grow, finds its block.

package cache

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
)

// blocks are written under the lock of their shard.
type blocks struct {
	list  atomic.Pointer[[]uintptr]
	bytes int // of each
}

const lineBytes = 64

func (b *blocks) init(bytes int) {
	b.bytes = bytes
	b.list.Store(&[]uintptr{})
}

// at returns the address of block i.
func (b *blocks) at(i uint32) uintptr { return (*b.list.Load())[i] }

func (b *blocks) len() int { return len(*b.list.Load()) }

// grow adds a block.
func (b *blocks) grow(parent freehold.Allocator) error {
	block, err := parent.Zeroed(b.bytes, lineBytes)
	if err != nil {
		return err
	}
	old := *b.list.Load()
	list := append(old[:len(old):len(old)], addrOf(block))
	b.list.Store(&list)
	return nil
}

// cut returns the blocks beyond the first n to the parent. Nobody may use them any more.
func (b *blocks) cut(parent freehold.Allocator, n int) {
	old := *b.list.Load()
	list := old[:n:n]
	b.list.Store(&list)
	for _, addr := range old[n:] {
		parent.Free(bytesAt(addr, b.bytes))
	}
}

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func bytesAt(addr uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(addr)), n) }
