// Misuse: what was wrong with a block that was put back.

package pool

import "fmt"

// misused panics with what is wrong with the block at addr; why if that is
// known.
func (b *Blocks) misused(call string, addr uintptr, why string) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen(call)
	if why == "" {
		why = b.diagnose(addr)
	}
	panic(fmt.Sprintf("freehold: %s of %#x in a pool of %d bytes a block: %s", call, addr, b.bytes, why))
}

// putName returns what its callers call put.
func (b *Blocks) putName() string {
	if b.counted {
		return "Put"
	}
	return "Free"
}

// diagnose says why no live block begins at addr. central.mu is held, so that
// the chunk stays.
func (b *Blocks) diagnose(addr uintptr) string {
	c := b.chunkOf(addr)
	if c == nil {
		if b.counted { // put back by a pointer
			return "the memory is not of this pool"
		}
		return "the memory is not of this pool; was it moved by append?"
	}
	off := addr - c.base
	i := b.index(off)
	switch {
	case i >= c.blocks:
		return "it lies behind the last block of a chunk"
	case i*b.stride != off:
		return fmt.Sprintf("it points %d bytes into a block", off-i*b.stride)
	case b.state(c, i).load() == stateRetired:
		return "the block was retired before"
	case !b.isLive(b.state(c, i), addr):
		return "the block is free; it was freed before (double free), or never handed out"
	}
	return "the block is live now; it was put back while another goroutine took it"
}

// mustBeOpen panics after Close. central.mu is held.
func (b *Blocks) mustBeOpen(call string) {
	if b.central.closed {
		panic(fmt.Sprintf("freehold: %s in a pool of %d bytes a block after Close", call, b.bytes))
	}
}

// mustBeWhole panics if r has not the shape of a block.
func (b *Blocks) mustBeWhole(call string, r []byte) {
	if len(r) <= b.bytes && len(r) == cap(r) {
		return
	}
	why := ""
	if b.chunkOf(addrOf(r)) != nil {
		why = fmt.Sprintf("a slice of %d bytes and a capacity of %d is no block", len(r), cap(r))
	}
	b.misused(call, addrOf(r), why)
}

// whole returns how many slices at the start of src have the shape of a block,
// up to 128.
func (b *Blocks) whole(src [][]byte) int {
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
	slot := b.stacks.Enter() // keeps the chunk's side
	live := b.isLive(b.stateOf(addrOf(r)), addrOf(r))
	b.stacks.Leave(slot)
	if !live || len(r) > b.bytes {
		b.misused(call, addrOf(r), "")
	}
}
