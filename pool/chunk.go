// Chunks: where blocks lie, and how one is found from its address.
//
// A chunk has a power of two of bytes and begins at a multiple of that, so the
// upper bits of an address name the chunk that it would lie in. A table knows
// which of those are the pool's; no memory is read to find out that an address
// is foreign. What is known of the blocks stands in a piece of its own:
//
//	mem   | block 0 | block 1 | ... | block n-1 | < stride |
//	side  | free, 1 bit each | states, 4 B each; 16 B with generations, if counted |
//
// A word of free is for 64 blocks, whose states are whole cache lines. A batch
// is such a word where it can be, so that processors do not share these lines.
// States come second: block 0 and its state should not lie alike in their
// pages, for then the processor takes a store to one for a store to the other.

package pool

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// chunk is a piece of the parent's memory, cut into blocks.
//
// The fields up to side are fixed. central.mu guards the others.
//
// Invariants:
//   - base is a multiple of 1<<shift
//   - blocks <= perChunk
//   - free has freeBlocks bits set, each of a block in state free
//   - partial == the chunk is on central.partial; freeBlocks > 0 implies partial
type chunk struct {
	base   uintptr
	blocks uintptr // how many there are
	states uintptr // address of the blocks' states
	mem    []byte
	side   []byte

	free       []uint64
	freeBlocks int
	partial    bool
}

// The states of a block. One that a Cache took has the number of that and its
// place there, see cache.go: it is in the cache, and free, or out, and live.
const (
	stateFree    = 0
	stateLive    = 1
	stateRetired = 2
	stateOfCache = 1 << placeBits // and above
)

// isLive reports whether the block at addr, whose state is at st, is live.
// There is no such block if st is nil.
func (b *Blocks) isLive(st *state, addr uintptr) bool {
	if st == nil {
		return false
	}
	is := st.load()
	if is < stateOfCache {
		return is == stateLive
	}
	c := b.cacheOf(is)
	return c == nil || !c.has(is, addr)
}

// lastGen is above every generation of a chunk that was given back, in any
// pool, so that an address and a generation never come together twice.
var lastGen atomic.Uint64

// counted is the state of a block that has a generation.
type counted struct {
	state state
	_     uint32
	gen   word
}

// The bytes from state to state, as powers of two.
const (
	stateShift   = 2
	countedShift = 4
)

const (
	_ = -(unsafe.Sizeof(state(0)) ^ 1<<stateShift)
	_ = -(unsafe.Sizeof(counted{}) ^ 1<<countedShift)
)

// sideWords returns how many words of free there are for a chunk. An address at
// the end of a chunk, behind all blocks, has a state too, which is never live.
func (b *Blocks) sideWords() int { return (b.perChunk + 1 + 63) / 64 }

// sideBytes returns the size of a chunk's side piece.
func (b *Blocks) sideBytes() int { return b.freeBytes() + b.sideWords()*64<<b.stateShift }

// freeBytes returns what of that is for free: whole cache lines.
func (b *Blocks) freeBytes() int { return (b.sideWords()*8 + 63) &^ 63 }

// chunkCost returns what a chunk takes from the parent, in bytes.
func (b *Blocks) chunkCost() int {
	if len(b.central.sides) > 0 {
		return 1 << b.shift
	}
	return 1<<b.shift + b.sideBytes()
}

// state returns the state of block i.
func (b *Blocks) state(c *chunk, i uintptr) *state { return stateAt(c.states + i<<b.stateShift) }

// newChunk takes a chunk of n blocks from the parent, all free.
func (b *Blocks) newChunk(n int) (*chunk, error) {
	side, err := b.newSide()
	if err != nil {
		return nil, refused(err)
	}
	var mem []byte
	defer func() {
		if mem == nil {
			b.giveSide(side)
		}
	}()
	mem, err = b.parent.Alloc(1<<b.shift, 1<<b.shift)
	if err != nil {
		return nil, refused(err)
	}
	b.central.bytes += len(mem)
	c := &chunk{base: addrOf(mem), blocks: uintptr(n), mem: mem, side: side}
	c.states = addrOf(side) + uintptr(b.freeBytes())
	c.free = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(side))), b.sideWords())
	if b.counted {
		first := lastGen.Load()
		for i := range c.blocks {
			b.state(c, i).gen().store(first)
		}
	}
	c.freeAll()
	return c, nil
}

// newSide returns a side piece whose states are all free: one of a chunk that is
// gone, or the parent's.
func (b *Blocks) newSide() ([]byte, error) {
	t := &b.central
	if last := len(t.sides) - 1; last >= 0 {
		side := t.sides[last]
		t.sides = t.sides[:last]
		return side, nil
	}
	side, err := b.parent.Alloc(b.sideBytes(), 64)
	clear(side)
	t.bytes += len(side)
	return side, err
}

// giveSide returns a side piece to the parent, or keeps it while a Cache is
// open: that remembers where the states of blocks stand that it once had.
func (b *Blocks) giveSide(side []byte) {
	t := &b.central
	if t.caches > 0 {
		t.sides = append(t.sides, side)
		return
	}
	t.bytes -= len(side)
	b.parent.Free(side)
}

// freeAll sets the bit of every block.
func (c *chunk) freeAll() {
	for i := range c.free {
		switch n := int(c.blocks) - i*64; {
		case n >= 64:
			c.free[i] = math.MaxUint64
		case n > 0:
			c.free[i] = 1<<n - 1
		default:
			c.free[i] = 0
		}
	}
	c.freeBlocks = int(c.blocks)
}

// give returns the chunk's memory to the parent.
func (b *Blocks) give(c *chunk) {
	if b.counted {
		last := uint64(0)
		for i := range c.blocks {
			last = max(last, b.state(c, i).gen().load())
		}
		for old := lastGen.Load(); old <= last && !lastGen.CompareAndSwap(old, last+1); {
			old = lastGen.Load()
		}
	}
	b.central.bytes -= len(c.mem)
	b.parent.Free(c.mem)
	b.giveSide(c.side)
}

// chunkOf returns the chunk around addr, or nil.
func (b *Blocks) chunkOf(addr uintptr) *chunk { return b.table.Load().chunkOf(addr & b.chunkMask) }

// stateOf returns the state of the block that begins at addr, nil if none does.
// Who asks holds a slot of stacks or has a Cache open: that keeps the side.
func (b *Blocks) stateOf(addr uintptr) *state {
	t, base := b.table.Load(), addr&b.chunkMask
	for i := t.first(base); ; i++ {
		s := &t.slots[i&(len(t.slots)-1)]
		switch s.base.Load() {
		case base:
			// off * recip: above the index, below the rest, which is nothing if < recip.
			at, rest := bits.Mul64(uint64(addr-base), b.recip)
			if rest >= b.recip {
				return nil
			}
			return stateAt(s.states.Load() + uintptr(at)<<b.stateShift)
		case emptySlot:
			return nil
		}
	}
}

// index returns the number of the block at byte off of a chunk: off / stride.
func (b *Blocks) index(off uintptr) uintptr {
	hi, _ := bits.Mul64(uint64(off), b.recip)
	return uintptr(hi)
}

// table is a hash table with open addressing from addresses to chunks. At most
// half of the slots are taken. A chunk is added in place, under central.mu, and
// removed by a new table.
type table struct {
	slots []slot // a power of two
	mask  uint64 // (len(slots) - 1) * slotBytes
	used  int
}

// slot is empty while base is emptySlot. The rest is stored before the base;
// states is the chunk's.
type slot struct {
	base   atomic.Uintptr
	states atomic.Uintptr
	chunk  atomic.Pointer[chunk]
	_      uintptr
}

const (
	minSlots  = 8
	slotShift = 5
	slotBytes = 1 << slotShift // as the assembly counts
	emptySlot = 1              // no chunk begins there
	golden    = 0x9E3779B97F4A7C15
)

// newTable returns a table with room for n chunks.
func newTable(n int) *table {
	size := minSlots
	for size < 2*n {
		size *= 2
	}
	t := &table{slots: make([]slot, size), mask: uint64(size-1) * slotBytes}
	for i := range t.slots {
		t.slots[i].base.Store(emptySlot)
	}
	return t
}

// first returns the slot where the search for base begins.
func (t *table) first(base uintptr) int {
	return int(uint64(base) * golden >> (32 - slotShift) & t.mask / slotBytes)
}

// chunkOf returns the chunk at base, or nil.
func (t *table) chunkOf(base uintptr) *chunk {
	for i := t.first(base); ; i++ {
		s := &t.slots[i&(len(t.slots)-1)]
		switch s.base.Load() {
		case base:
			return s.chunk.Load()
		case emptySlot:
			return nil
		}
	}
}

// add enters c; there must be room.
func (t *table) add(c *chunk) {
	for i := t.first(c.base); ; i++ {
		s := &t.slots[i&(len(t.slots)-1)]
		if s.base.Load() == emptySlot {
			s.chunk.Store(c)
			s.states.Store(c.states)
			s.base.Store(c.base)
			t.used++
			return
		}
	}
}

// enter adds c to the table that everybody reads. central.mu is held.
func (b *Blocks) enter(c *chunk) {
	t := b.table.Load()
	if 2*(t.used+1) > len(t.slots) {
		b.retable(2 * len(b.central.chunks))
		t = b.table.Load()
	}
	t.add(c)
}

// retable makes a table of central.chunks, with room for n. central.mu is held.
func (b *Blocks) retable(n int) {
	t := newTable(max(n, len(b.central.chunks)+1))
	for _, c := range b.central.chunks {
		t.add(c)
	}
	b.table.Store(t)
}
