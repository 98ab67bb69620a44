// Chunks of a Shared: memory from the parent, allocated from front to back.
//
//	mem  +---------+-----+---------+------------------+
//	     | block   | pad | block   | free             |
//	     +---------+-----+---------+------------------+
//	     0                         at          len(mem)

package arena

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/poison"
)

// A sharedChunk is memory for blocks. It also counts the blocks allocated and freed in its slot of
// the table; a chunk without memory only counts.
//
// In the table, a chunk belongs to the holder of its slot, and mem, base, dedicated and generation
// are fixed. Outside of the table, mu of the Shared guards it.
//
// Invariant: 0 <= at <= len(mem)
type sharedChunk struct {
	mem        []byte  // the parent's block
	base       uintptr // address of mem
	at         uint    // bytes of mem in use, with padding
	generation uint64  // the Shared's generation when the chunk was taken into use
	dedicated  bool    // taken from the parent for one large block
	zero       bool    // mem[at:] is zero
	maxFree    uint    // free bytes when it came into the table; mu guards it

	// The blocks and bytes allocated here minus the ones freed here. They may be negative.
	live, liveBytes int

	_ [128 - 8 - 9*unsafe.Sizeof(uintptr(0))]byte // against false sharing
}

func newSharedChunk(mem []byte, dedicated, zero bool) *sharedChunk {
	asan.Poison(mem)
	return &sharedChunk{mem: mem, base: addressOf(mem), dedicated: dedicated, zero: zero}
}

// take cuts off a block, or returns nil if it does not fit. It does not touch the block's memory.
//
// Precondition: size is positive and align a power of two.
func (c *sharedChunk) take(size, align int) []byte {
	if !c.fits(size, align) {
		return nil
	}
	from, to := c.place(size, align)
	c.count(to, size)
	b := c.mem[from:to:to]
	asan.Unpoison(b)
	return b
}

// count counts a block of size bytes that ends at to.
func (c *sharedChunk) count(to uint, size int) {
	c.at = to
	c.live++
	c.liveBytes += size
}

// fits reports whether take would succeed.
func (c *sharedChunk) fits(size, align int) bool {
	from, to := c.place(size, align)
	return from <= to && to <= uint(len(c.mem))
}

// place returns the offsets in mem at which the next block would begin and end. They may be beyond
// the end of mem. The addition of size may overflow, and then to is less than from; the addition of
// the padding cannot.
func (c *sharedChunk) place(size, align int) (from, to uint) {
	from = c.at + uint(-(c.base+uintptr(c.at))&uintptr(align-1))
	return from, from + uint(size)
}

// extend extends b to size bytes. It reports false if b is not the last block or does not fit.
func (c *sharedChunk) extend(b []byte, size int) ([]byte, bool) {
	from := uint(addressOf(b) - c.base)
	if from >= c.at || c.at-from != uint(len(b)) || uint(size) > uint(len(c.mem))-from {
		return nil, false
	}
	to := from + uint(size)
	c.at = to
	c.liveBytes += size - len(b)
	b = c.mem[from:to:to]
	asan.Unpoison(b)
	return b, true
}

// mayFit reports whether a chunk in the table may have memory for a block of size bytes: free
// bytes, or blocks that a Reset has given up. The caller holds mu of the Shared but not the slot.
// The free bytes only decrease in the table, so maxFree is an upper bound.
func (c *sharedChunk) mayFit(size int, generation uint64) bool {
	return c.mem != nil && (c.generation != generation || c.maxFree >= uint(size))
}

// holds reports whether the byte at addr is in the chunk's memory.
func (c *sharedChunk) holds(addr uintptr) bool { return addr-c.base < uintptr(len(c.mem)) }

// rewind makes all of the chunk's memory free, and poison if the arena is checked.
func (c *sharedChunk) rewind(checked bool) {
	if checked {
		poison.Leave(c.mem)
	}
	c.at, c.live, c.liveBytes, c.zero = 0, 0, 0, false
}

// noGeneration is the generation of a chunk that is not in use.
const noGeneration = 1<<64 - 1

// noChunk is the value of an empty slot.
var noChunk = sharedChunk{generation: noGeneration}
