// Chunks: the layout of memory, and the lookup of a block by its address.
//
// The size of a chunk is a power of two, and its address a multiple of the size. So masking an
// address gives the base of the chunk that would contain it. A hash table of the pool's chunks
// tells whether there is such a chunk, so the pool never reads foreign memory. The metadata of a
// chunk is an allocation of its own:
//
//	mem       | block 0 | block 1 | ... | block n-1 | < stride |
//	metadata  | free, 1 bit each | statuses, 4 B each; 16 B with generations, if versioned |
//
// A word of free covers 64 blocks, whose statuses fill whole cache lines. Where possible a batch is
// the blocks of one word, so processors do not share these lines. Statuses come after free to avoid
// 4K aliasing between a block and its status.

package pool

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/container"
)

// chunk is an allocation of the parent, cut into blocks.
//
// The fields up to metadata are fixed. central.mu guards the others.
//
// Invariants:
//   - base is a multiple of 1<<shift
//   - blocks <= perChunk
//   - free has freeBlocks bits set, each of a block whose status is free. The exception is a block
//     that two goroutines freed concurrently: one of its two entries came back, and the other was
//     handed out
//   - partial == the chunk is on central.partial; freeBlocks > 0 implies partial
type chunk struct {
	base     uintptr
	blocks   uintptr // number of blocks
	statuses uintptr // address of the status of block 0
	mem      []byte
	metadata []byte

	free       []uint64
	freeBlocks int
	partial    bool
}

// The statuses of a block. The status of a block that came through a cache is the number of the
// cache and the block's place there. Such a block is free if it is in the cache, and live
// otherwise; see cache.go.
const (
	statusFree    = 0
	statusLive    = 1
	statusMoving  = 2              // free, in transit to a stack or cache, or its chunk is being returned
	statusRetired = 3              // and above: see retireList.status
	statusOfCache = 1 << placeBits // and above
)

func (s status) isRetired() bool { return s >= statusRetired && s < statusOfCache }

// isLive reports whether the block at addr, with the status at st, is live. It is false for a nil
// st, which means that there is no such block.
func (b *Blocks) isLive(st *status, addr uintptr) bool {
	if st == nil {
		return false
	}
	is := st.load()
	if is < statusOfCache {
		return is == statusLive
	}
	c := b.cacheOf(is)
	return c == nil || !c.has(is, addr)
}

// lastGen is above every generation of a chunk that was given back, in any pool. So no pair of an
// address and a generation is used twice.
var lastGen atomic.Uint64

// versionedStatus is the status of a block with its generation.
type versionedStatus struct {
	status status
	_      uint32
	gen    word
}

// The bytes from one status to the next, as powers of two.
const (
	statusShift    = 2
	versionedShift = 4
)

const (
	_ = -(unsafe.Sizeof(status(0)) ^ 1<<statusShift)
	_ = -(unsafe.Sizeof(versionedStatus{}) ^ 1<<versionedShift)
)

// freeWords returns the number of words in free. The rest of a chunk behind its last block has a
// status too, which is never live.
func (b *Blocks) freeWords() int { return (b.perChunk + 1 + 63) / 64 }

// metadataBytes returns the size of a chunk's metadata.
func (b *Blocks) metadataBytes() int { return b.freeBytes() + b.freeWords()*64<<b.statusShift }

// freeBytes returns the size of free in the metadata: whole cache lines.
func (b *Blocks) freeBytes() int { return (b.freeWords()*8 + 63) &^ 63 }

// chunkCost returns the bytes that a new chunk takes from the parent.
func (b *Blocks) chunkCost() int {
	if len(b.central.spare) > 0 {
		return 1 << b.shift
	}
	return 1<<b.shift + b.metadataBytes()
}

// status returns the status of block i.
func (b *Blocks) status(c *chunk, i uintptr) *status { return statusAt(c.statuses + i<<b.statusShift) }

// newChunk takes a chunk of n blocks from the parent, all free.
func (b *Blocks) newChunk(n int) (*chunk, error) {
	metadata, err := b.newMetadata()
	if err != nil {
		return nil, container.Refused(err)
	}
	var mem []byte
	defer func() {
		if mem == nil {
			b.giveMetadata(metadata)
		}
	}()
	mem, err = b.parent.Alloc(1<<b.shift, 1<<b.shift)
	if err != nil {
		return nil, container.Refused(err)
	}
	b.central.bytes += len(mem)
	c := &chunk{base: addrOf(mem), blocks: uintptr(n), mem: mem, metadata: metadata}
	c.statuses = addrOf(metadata) + uintptr(b.freeBytes())
	c.free = unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(metadata))), b.freeWords())
	if b.versioned {
		first := lastGen.Load()
		for i := range c.blocks {
			b.status(c, i).gen().store(first)
		}
	}
	c.freeAll()
	b.poisonAll(c)
	return c, nil
}

// newMetadata returns metadata in which every status is free: spare metadata, or a new block from
// the parent.
func (b *Blocks) newMetadata() ([]byte, error) {
	t := &b.central
	if last := len(t.spare) - 1; last >= 0 {
		metadata := t.spare[last]
		t.spare = t.spare[:last]
		return metadata, nil
	}
	metadata, err := b.parent.Alloc(b.metadataBytes(), 64)
	clear(metadata)
	t.bytes += len(metadata)
	return metadata, err
}

// giveMetadata returns metadata to the parent. While a cache is open it keeps the metadata as
// spare, since a cache has pointers to the statuses of blocks that it handed out.
func (b *Blocks) giveMetadata(metadata []byte) {
	t := &b.central
	if t.caches > 0 {
		t.spare = append(t.spare, metadata)
		return
	}
	t.bytes -= len(metadata)
	b.parent.Free(metadata)
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

// give returns the chunk's memory to the parent. Later chunks at its address must not repeat a
// generation, so it raises lastGen above the generations of the chunk's blocks.
func (b *Blocks) give(c *chunk) {
	if b.versioned {
		last := uint64(0)
		for i := range c.blocks {
			last = max(last, b.status(c, i).gen().load())
		}
		for old := lastGen.Load(); old <= last && !lastGen.CompareAndSwap(old, last+1); {
			old = lastGen.Load()
		}
	}
	b.central.bytes -= len(c.mem)
	asan.Unpoison(c.mem)
	b.parent.Free(c.mem)
	b.giveMetadata(c.metadata)
}

// chunkOf returns the chunk around addr, or nil.
func (b *Blocks) chunkOf(addr uintptr) *chunk {
	if s := b.table.Load().find(addr & b.chunkMask); s != nil {
		return s.chunk.Load()
	}
	return nil
}

// statusOf returns the status of the block that begins at addr, or nil. The caller holds a slot or
// has a cache open, which keeps the metadata mapped.
func (b *Blocks) statusOf(addr uintptr) *status {
	return b.statusIn(b.table.Load().find(addr&b.chunkMask), addr)
}

// statusIn is statusOf with the slot of addr's chunk, which may be nil.
func (b *Blocks) statusIn(s *slot, addr uintptr) *status {
	// The product's upper word is the index. Its lower word is less than recip if and only if a
	// block begins at addr.
	at, rest := bits.Mul64(uint64(addr&^b.chunkMask), b.recip)
	if s == nil || rest >= b.recip {
		return nil
	}
	return statusAt(s.statuses.Load() + uintptr(at)<<(b.statusShift&15))
}

// index returns the number of the block at byte off of a chunk: off / stride.
func (b *Blocks) index(off uintptr) uintptr {
	hi, _ := bits.Mul64(uint64(off), b.recip)
	return uintptr(hi)
}

// table is a hash table from base addresses to chunks, with open addressing. Readers take no lock.
// At most half of the slots are in use, so each search ends at an empty slot. A chunk is added in
// place under central.mu. To remove chunks, a new table replaces the old one.
type table struct {
	slots []slot  // a power of two
	mask  uintptr // (len(slots) - 1) * slotBytes
	used  int
}

// slot is empty while base is emptySlot. base is stored last, so a reader that finds it also finds
// chunk and statuses.
type slot struct {
	base     atomic.Uintptr
	statuses atomic.Uintptr
	chunk    atomic.Pointer[chunk]
	_        [slotBytes - 3*unsafe.Sizeof(uintptr(0))]byte
}

const (
	minSlots  = 8
	slotShift = 5
	slotBytes = 1 << slotShift
	emptySlot = 1 // not the address of a chunk
	golden    = 0x9E3779B97F4A7C15
)

// newTable returns a table with room for n chunks.
func newTable(n int) *table {
	size := minSlots
	for size < 2*n {
		size *= 2
	}
	t := &table{slots: make([]slot, size), mask: uintptr(size-1) * slotBytes}
	for i := range t.slots {
		t.slots[i].base.Store(emptySlot)
	}
	return t
}

// first returns the unmasked offset in slots at which the search for base begins.
func first(base uintptr) uintptr { return uintptr(uint64(base) * golden >> (32 - slotShift)) }

// at returns the slot at a masked offset.
func (t *table) at(i uintptr) *slot {
	return (*slot)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.slots)), i&t.mask))
}

// find returns the slot of the chunk at base, or nil.
func (t *table) find(base uintptr) *slot {
	for i := first(base); ; i += slotBytes {
		s := t.at(i)
		switch s.base.Load() {
		case base:
			return s
		case emptySlot:
			return nil
		}
	}
}

// add adds c. There must be room for it.
func (t *table) add(c *chunk) {
	for i := first(c.base); ; i += slotBytes {
		s := t.at(i)
		if s.base.Load() == emptySlot {
			s.chunk.Store(c)
			s.statuses.Store(c.statuses)
			if onAdd != nil {
				onAdd(s)
			}
			s.base.Store(c.base)
			t.used++
			return
		}
	}
}

// onAdd, if not nil, is called before a slot gets its base. For tests.
var onAdd func(*slot)

// enter adds c to the pool's table, or to a larger copy if the table is half full. central.mu is
// held.
func (b *Blocks) enter(c *chunk) {
	t := b.table.Load()
	if 2*(t.used+1) > len(t.slots) {
		b.retable(2 * len(b.central.chunks))
		t = b.table.Load()
	}
	t.add(c)
}

// retable replaces the table by a table of central.chunks, with room for at least n chunks.
// central.mu is held.
func (b *Blocks) retable(n int) {
	t := newTable(max(n, len(b.central.chunks)+1))
	for _, c := range b.central.chunks {
		t.add(c)
	}
	b.table.Store(t)
}
