// Misuse: the panics for invalid blocks and their diagnosis.

package pool

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/arg"
)

// freedTwice is the reason of a panic for a live block among the free ones.
const freedTwice = "it was freed by two goroutines at once; found when it was handed out again"

// misused panics and says why the block at addr was refused. If why is empty, it finds
// the reason.
func (b *Blocks) misused(call string, addr uintptr, why string) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.refuse(call, addr, why)
}

// refuse is misused with central.mu held.
func (b *Blocks) refuse(call string, addr uintptr, why string) {
	b.mustBeOpen(call)
	if why == "" {
		why = b.diagnose(addr)
	}
	arg.Panicf(call, "block %#x, pool of %s: %s", addr, b.contents(), why)
}

// contents names the pool's blocks.
func (b *Blocks) contents() string {
	if b.of != nil {
		return b.of.String()
	}
	return fmt.Sprintf("%d-byte blocks", b.bytes)
}

// getCall returns the exported name of the call that get serves.
func (b *Blocks) getCall() string {
	if b.versioned {
		return "pool.Pool.Get"
	}
	return "pool.Blocks.Alloc"
}

// putCall returns the exported name of the call that put serves.
func (b *Blocks) putCall() string {
	if b.versioned {
		return "pool.Pool.Put"
	}
	return "pool.Blocks.Free"
}

// The calls of a cache.
const (
	getOfCache = "pool.Cache.Get"
	putOfCache = "pool.Cache.Put"
)

// diagnose says why no live block begins at addr. central.mu is held, so the chunk stays.
func (b *Blocks) diagnose(addr uintptr) string {
	c := b.chunkOf(addr)
	if c == nil {
		if b.versioned { // put back by a pointer
			return "the memory is not of this pool"
		}
		return "the memory is not of this pool; was it moved by append?"
	}
	off := addr - c.base
	i := b.index(off)
	switch {
	case i >= c.blocks:
		return "it is beyond the last block of a chunk"
	case i*b.stride != off:
		return fmt.Sprintf("it points %s into a block", arg.Bytes(int(off-i*b.stride)))
	case b.status(c, i).load().isRetired():
		return "the block was retired before"
	case !b.isLive(b.status(c, i), addr):
		return "the block is free; it was freed before (double free), or never handed out"
	}
	return "the block is live now; it was put back while another goroutine took it"
}

// mustBeMade panics if b is the zero value, of Blocks or in a Pool.
func (b *Blocks) mustBeMade(call string) {
	if b.misfit == nil {
		arg.Panicf(call, "zero value: pool.New makes a Pool, pool.NewBlocks makes Blocks")
	}
}

// mustBeOpen panics after Close, and without a constructor.
func (b *Blocks) mustBeOpen(call string) {
	b.mustBeMade(call)
	if b.central.closed.Load() {
		arg.Panicf(call, "the pool of %s is closed", b.contents())
	}
}

// mustBeMade panics if c is the zero value.
func (c *cache) mustBeMade(call string) {
	if c.blocks == nil {
		arg.Panicf(call, "zero value: Pool.NewCache makes a Cache")
	}
}

// mustBeOpen panics after Close.
func (c *cache) mustBeOpen(call string) {
	if c.closed {
		arg.Panicf(call, "the cache of the pool of %s is closed", c.blocks.contents())
	}
}

// mustBeWhole panics unless r is no longer than a block and its capacity equals its length.
func (b *Blocks) mustBeWhole(call string, r []byte) {
	if len(r) <= b.bytes && len(r) == cap(r) {
		return
	}
	b.mustBeMade(call)
	why := ""
	if b.chunkOf(addrOf(r)) != nil {
		why = fmt.Sprintf("a slice of %s and a capacity of %d is no block", arg.Bytes(len(r)), cap(r))
	}
	b.misused(call, addrOf(r), why)
}

// whole returns the number of slices at the start of src that have the length and capacity of a
// block, up to 128. It is 0 in a checked pool, which frees one by one.
func (b *Blocks) whole(src [][]byte) int {
	if b.checked {
		return 0
	}
	src = src[:min(len(src), fullStackBlocks)]
	for i, r := range src {
		if uint(len(r)-1) >= uint(b.bytes) || len(r) != cap(r) {
			return i
		}
	}
	return len(src)
}

// mustBeLive panics if r does not begin a live block.
func (b *Blocks) mustBeLive(call string, r []byte) {
	b.mustBeMade(call)
	slot := b.stacks.Enter() // keeps the metadata mapped
	live := b.isLive(b.statusOf(addrOf(r)), addrOf(r))
	b.stacks.Leave(slot)
	if !live || len(r) > b.bytes {
		b.misused(call, addrOf(r), "")
	}
}
