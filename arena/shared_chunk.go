// Chunks of a Shared: memory from the parent, handed out from front to back.
//
//	mem  +---------+-----+---------+------------------+
//	     | block   | pad | block   | room             |
//	     +---------+-----+---------+------------------+
//	     0                         at          len(mem)

package arena

import "unsafe"

// A sharedChunk is memory that blocks are cut from, and the count of what was
// done in its slot of the table. One without memory only counts.
//
// It has one owner at a time: the holder of its slot while it is in the table,
// and otherwise the holder of the Shared's mu.
//
// Invariant: 0 <= at <= len(mem)
type sharedChunk struct {
	mem        []byte  // whole, as the parent gave it
	base       uintptr // mem's address
	at         uint    // the bytes of mem that are used, padding included
	generation uint64  // of the Shared when it was put in use
	own        bool    // it was made for one large block
	zero       bool    // mem[at:] is zero
	mostRoom   uint    // the bytes behind at when it came into the table; mu guards it

	// Blocks and their bytes, allocated less freed; negative where more is
	// freed than allocated.
	live, liveBytes int

	_ [128 - 8 - 9*unsafe.Sizeof(uintptr(0))]byte // neighbours do not disturb each other
}

func newSharedChunk(mem []byte, own, zero bool) *sharedChunk {
	return &sharedChunk{mem: mem, base: addressOf(mem), own: own, zero: zero}
}

// take cuts a block off; nil if there is no room. It touches no memory of the
// block. size is positive and align a power of two.
func (c *sharedChunk) take(size, align int) []byte {
	from := c.next(align)
	if from > uint(len(c.mem)) || uint(size) > uint(len(c.mem))-from {
		return nil
	}
	to := from + uint(size)
	c.at = to
	c.live++
	c.liveBytes += size
	return c.mem[from:to:to]
}

// fits reports whether take would succeed.
func (c *sharedChunk) fits(size, align int) bool {
	from := c.next(align)
	return from <= uint(len(c.mem)) && uint(size) <= uint(len(c.mem))-from
}

// next returns where in mem the next block would begin, which may be beyond the
// end. Unsigned, no sum of at and a padding wraps around.
func (c *sharedChunk) next(align int) uint {
	return c.at + uint(-(c.base+uintptr(c.at))&uintptr(align-1))
}

// extend makes the last block, b, longer; false if b is not the last block or
// there is no room.
func (c *sharedChunk) extend(b []byte, size int) ([]byte, bool) {
	from := uint(addressOf(b) - c.base)
	if from >= c.at || c.at-from != uint(len(b)) || uint(size) > uint(len(c.mem))-from {
		return nil, false
	}
	to := from + uint(size)
	c.at = to
	c.liveBytes += size - len(b)
	return c.mem[from:to:to], true
}

// mayServe reports whether a chunk in the table may have what a block of size
// bytes needs: room, or memory that a Reset has given up. The Shared's mu is held,
// and not the slot: room only shrinks there, so mostRoom is a bound.
func (c *sharedChunk) mayServe(size int, generation uint64) bool {
	return c.mem != nil && (c.generation != generation || c.mostRoom >= uint(size))
}

// holds reports whether the byte at addr is in the chunk's memory.
func (c *sharedChunk) holds(addr uintptr) bool { return addr-c.base < uintptr(len(c.mem)) }

// rewind makes all of the chunk's memory room again.
func (c *sharedChunk) rewind() {
	if debug {
		poison(c.mem)
	}
	c.at, c.live, c.liveBytes, c.zero = 0, 0, 0, false
}

// noGeneration is that of a chunk that is not in use.
const noGeneration = 1<<64 - 1

// noChunk is the entry of an empty slot.
var noChunk = sharedChunk{generation: noGeneration}
