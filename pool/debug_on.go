// Debug builds: free blocks hold 0xDB.
//
// A block is filled when it is freed, after Retire when its readers have left, and
// checked when it is handed out again. Blocks of a new chunk are filled too. The
// padding behind a block holds the fill, or 0 if Get cleared it, and is checked
// when the block is freed or retired.

//go:build freehold_debug

package pool

import (
	"fmt"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
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

// claimAll is claim for each entry.
func (b *Blocks) claimAll(in []entry) {
	for _, e := range in {
		b.claim(e.addr)
	}
}

// mustEndUntouched panics if the padding behind the live block at addr was written.
// For any other addr it is a no-op. No slot is held.
func (b *Blocks) mustEndUntouched(call string, addr uintptr) {
	if n := b.overrun(addr); n > 0 {
		b.misused(call, addr, "it was written "+arg.Bytes(n)+" beyond its end")
	}
}

// overrun returns how far beyond the end of the live block at addr the first written
// byte of its padding is: 1 for the byte behind the block, 0 if none was written.
func (b *Blocks) overrun(addr uintptr) int {
	slot := b.stacks.Enter() // keeps the metadata mapped
	live := b.isLive(b.statusOf(addr), addr)
	b.stacks.Leave(slot)
	if !live {
		return 0
	}
	for i, c := range unsafe.Slice((*byte)(pointer(addr)), b.stride)[b.bytes:] {
		if c != 0 && c != poisonByte {
			return i + 1
		}
	}
	return 0
}

// claim panics if the free block at addr was written. No slot is held.
func (b *Blocks) claim(addr uintptr) {
	for i, c := range unsafe.Slice((*byte)(pointer(addr)), b.stride) {
		if c != poisonByte {
			b.misused(b.getCall(), addr, fmt.Sprintf("byte %d was written while the block was free, or beyond the end of another", i))
		}
	}
}
