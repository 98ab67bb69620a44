// Debug builds: free blocks hold 0xDB.
//
// A block is filled when it is freed, after Retire when its readers have left, and
// checked when it is handed out again. Blocks of a new chunk are filled too.

//go:build freehold_debug

package pool

import (
	"fmt"
	"unsafe"
)

const (
	debugging  = true
	poisonByte = 0xDB
)

// poison fills the block at addr.
func (b *Blocks) poison(addr uintptr) {
	block := unsafe.Slice((*byte)(pointer(addr)), b.stride)
	for i := range block {
		block[i] = poisonByte
	}
}

// poisonAll fills the blocks of a chunk.
func (b *Blocks) poisonAll(c *chunk) {
	for i := range c.blocks {
		b.poison(c.base + i*b.stride)
	}
}

// allMustBePoison is mustBePoison for each entry.
func (b *Blocks) allMustBePoison(in []entry) {
	for _, e := range in {
		b.mustBePoison(e.addr)
	}
}

// mustBePoison panics if the free block at addr was written. No slot is held.
func (b *Blocks) mustBePoison(addr uintptr) {
	for i, c := range unsafe.Slice((*byte)(pointer(addr)), b.stride) {
		if c != poisonByte {
			b.misused(b.getCall(), addr, fmt.Sprintf("byte %d was written while the block was free, or beyond the end of another", i))
		}
	}
}
