// Poison: checked pools, which find writes to free blocks.
//
// A checked pool has no stacks, and its caches hold no block: each block comes from the central
// free list and returns to it, by the slow paths. It is poisoned while it is there; a retired block
// only once its readers have left. The padding behind a live block stays poisoned.

package pool

import (
	"fmt"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/poison"
)

// poison poisons the block at addr. It is not inlined, which keeps the loop of returnTo short.
//
//go:noinline
func (b *Blocks) poison(addr uintptr) {
	poison.Leave(unsafe.Slice((*byte)(pointer(addr)), b.stride))
}

// poisonAll is poison for the blocks of a chunk.
func (b *Blocks) poisonAll(c *chunk) {
	if b.checked {
		poison.Leave(c.mem)
	}
}

// claim ends the poisoning of blocks from carve, if the pool is checked. If one was written to,
// claim returns all to the free list and panics. central.mu is held.
func (b *Blocks) claim(call string, in []entry) {
	if !b.checked {
		return
	}
	for _, e := range in {
		block := unsafe.Slice((*byte)(pointer(e.addr)), b.stride)
		if i := poison.Take(block); i >= 0 {
			b.returnTo(in, statusMoving)
			b.refuseWritten(call, e.addr, i)
		}
		asan.Poison(block[b.bytes:])
	}
}

// mustBePoison panics if the pool is checked and a free block was written to. It poisons the block
// again, so it reports each write once. central.mu is held.
func (b *Blocks) mustBePoison(call string) {
	if !b.checked || asan.Enabled { // asan has reported it
		return
	}
	for _, c := range b.central.chunks {
		for i := range c.blocks {
			addr := c.base + i*b.stride
			if c.free[i/64]&(1<<(i%64)) == 0 {
				continue
			}
			if at := poison.Other(unsafe.Slice((*byte)(pointer(addr)), b.stride), poison.Fill); at >= 0 {
				b.poison(addr)
				b.refuseWritten(call, addr, at)
			}
		}
	}
}

// refuseWritten panics for byte i of the free block at addr. central.mu is held.
func (b *Blocks) refuseWritten(call string, addr uintptr, i int) {
	b.refuse(call, addr, fmt.Sprintf("byte %d was written while the block was free, or beyond the end of another", i))
}

// mustEndUntouched panics if the padding behind the live block at addr was written to. For any
// other addr it is a no-op. The pool is checked, and no slot is held.
func (b *Blocks) mustEndUntouched(call string, addr uintptr) {
	if asan.Enabled { // asan has reported it
		return
	}
	slot := b.stacks.Enter() // keeps the metadata mapped
	live := b.isLive(b.statusOf(addr), addr)
	b.stacks.Leave(slot)
	if !live {
		return
	}
	padding := unsafe.Slice((*byte)(pointer(addr)), b.stride)[b.bytes:]
	if i := poison.Take(padding); i >= 0 {
		b.misused(call, addr, "it was written "+arg.Bytes(i+1)+" beyond its end")
	}
}
