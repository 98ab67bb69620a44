// Central: the free list behind the per-processor stacks.
//
// The list of chunks with free blocks is last in, first out. A full chunk that gets a block back is
// the next to be used, so blocks come from few chunks. A batch takes neighbouring blocks.

package pool

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/owners"
)

// central is guarded by mu. The parent is called under mu.
//
// Invariants:
//   - blocks == sum of blocks over chunks, and <= MaxBlocks if there is one
//   - bytes == sum of the lengths of mem and metadata over chunks, plus the lengths in spare, and
//     <= MaxBytes if there is one
//   - spare is empty if caches == 0
//   - each block is on a stack, in a cache, moving, retired, live, or its bit in free is set
//
// # A block with two entries
//
// Free does not change the status atomically. Two goroutines that free one block within a few
// nanoseconds may both pass Free's check, and then two entries for it exist. The first entry that
// is handed out makes the status live. The code that meets the second entry sees this status and
// drops the entry: Get panics, giveBack and Trim are silent. If the second entry went back to the
// chunk before, carve meets its bit and panics, and seize keeps the chunk.
//
// Not detected: both entries are handed out within a few nanoseconds.
type central struct {
	mu      sync.Mutex
	closed  atomic.Bool // changes under mu
	chunks  []*chunk
	partial []*chunk // chunks with a free block, and some that are full again
	blocks  int
	bytes   int
	caches  int      // open caches
	spare   [][]byte // metadata of returned chunks, for new ones
}

// take moves up to len(out) free blocks to out and returns their number, at least one. Otherwise it
// returns the error of grow.
func (b *Blocks) take(call string, out []entry) (int, error) {
	b.collect(false)
	n, err := b.tryTake(call, out)
	if err == nil {
		return n, nil
	}
	// Other goroutines may have free blocks on stacks or in transit. Take one block at a time, to
	// leave blocks for other goroutines that run out.
	for tries := 0; tries < maxTries; tries++ {
		if !b.collect(true) && !b.drain() && b.exhausted() {
			break
		}
		if n, again := b.tryTake(call, out[:1]); again == nil {
			return n, nil
		}
		if tries < patientTries {
			runtime.Gosched()
		} else {
			time.Sleep(100 * time.Microsecond) // let the goroutine that has a block run
		}
	}
	return 0, err
}

// maxTries is the number of times that take retries while another goroutine moves a free block.
// After patientTries yields it sleeps instead.
const (
	patientTries = 30
	maxTries     = 1000
)

// tryTake is take without collecting and draining.
func (b *Blocks) tryTake(call string, out []entry) (int, error) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen(call)
	if b.checked {
		out = out[:1]
	}
	n := 0
	for n < len(out) {
		c := b.nextPartial()
		if c == nil {
			if n > 0 {
				break
			}
			if err := b.grow(); err != nil {
				return 0, err
			}
			continue
		}
		moved, twice := b.carve(c, out[n:])
		n += moved
		if twice != 0 {
			b.returnTo(out[:n], statusMoving)
			b.refuse(call, twice, freedTwice)
		}
	}
	b.claim(call, out[:n])
	// Stacks use the last entry first: make it the lowest address.
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return n, nil
}

// nextPartial returns a chunk with a free block, or nil.
func (b *Blocks) nextPartial() *chunk {
	p := &b.central.partial
	for len(*p) > 0 {
		c := (*p)[len(*p)-1]
		if c.freeBlocks > 0 {
			return c
		}
		c.partial = false
		*p = (*p)[:len(*p)-1]
	}
	return nil
}

// carve moves free blocks of c to out, from low addresses to high ones. It gives them the status
// moving, so a second entry of one is neither handed out nor accepted back. If a block is not free,
// carve drops it and stops; twice is then its address.
func (b *Blocks) carve(c *chunk, out []entry) (n int, twice uintptr) {
	for w := 0; w < len(c.free); w++ {
		for c.free[w] != 0 {
			if n == len(out) {
				return n, 0
			}
			i := uintptr(w*64 + bits.TrailingZeros64(c.free[w]))
			c.free[w] &= c.free[w] - 1
			c.freeBlocks--
			st := b.status(c, i)
			if st.load() != statusFree {
				return n, c.base + i*b.stride
			}
			st.store(statusMoving)
			out[n] = entry{c.base + i*b.stride, uintptr(unsafe.Pointer(st))}
			n++
		}
	}
	return n, 0
}

// giveBack returns free blocks to their chunks. Their status is from, and becomes statusFree.
func (b *Blocks) giveBack(in []entry, from status) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.returnTo(in, from)
}

// returnTo is giveBack with central.mu held. It drops the second entry of a block, if the chunk is
// gone, the bit is set, or the status differs. It finds the status by the chunk: the address in the
// entry may be in memory that was returned to the parent.
func (b *Blocks) returnTo(in []entry, from status) {
	var c *chunk // of the previous entry
	for _, e := range in {
		if c == nil || e.addr-c.base >= 1<<b.shift {
			c = b.chunkOf(e.addr)
		}
		if c == nil {
			continue
		}
		i := b.index(e.addr - c.base)
		st, word, bit := b.status(c, i), &c.free[i/64], uint64(1)<<(i%64)
		if st.load() != from || *word&bit != 0 {
			continue
		}
		if b.checked {
			b.poison(e.addr)
		}
		if from != statusFree {
			st.store(statusFree)
		}
		*word |= bit
		c.freeBlocks++
		b.setPartial(c)
	}
}

func (b *Blocks) setPartial(c *chunk) {
	if !c.partial {
		c.partial = true
		b.central.partial = append(b.central.partial, c)
	}
}

// grow adds a chunk.
func (b *Blocks) grow() error {
	t := &b.central
	n := b.perChunk
	if most := b.limits.MaxBlocks; most > 0 {
		if n = min(n, most-t.blocks); n == 0 {
			return fmt.Errorf("%w: one more block would exceed the pool's limit of %d", freehold.ErrOutOfMemory, most)
		}
	}
	if most := b.limits.MaxBytes; most > 0 && b.chunkCost() > most-t.bytes {
		return fmt.Errorf("%w: the pool has %d bytes, %d more would exceed the limit of %d", freehold.ErrOutOfMemory, t.bytes, b.chunkCost(), most)
	}
	c, err := b.newChunk(n)
	if err != nil {
		return err
	}
	b.enter(c)
	t.chunks = append(t.chunks, c)
	t.blocks += n
	b.setPartial(c)
	return nil
}

// reset makes all blocks free.
func (b *Blocks) reset(call string) {
	b.drain()
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen(call)
	b.mustBePoison(call)
	b.retireList.clear()
	b.eachCache((*cache).forget)
	for _, c := range b.central.chunks {
		for i := range c.blocks {
			st := b.status(c, i)
			if b.versioned && st.load() != statusFree {
				st.age()
			}
			st.store(statusFree)
		}
		c.freeAll()
		b.poisonAll(c)
		b.setPartial(c)
	}
}

// trim returns the chunks whose blocks are all free to the parent.
func (b *Blocks) trim(call string) {
	b.collect(true)
	b.drain()
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen(call)
	b.mustBePoison(call)
	b.release(func(c *chunk) bool { return c.freeBlocks == int(c.blocks) && b.seize(c) })
}

// seize makes every block of c moving, so that no second entry of one is handed out while c is
// being returned. If a block is not free, seize only clears that block's bit, and reports false.
// All bits of c are set before. central.mu is held.
func (b *Blocks) seize(c *chunk) bool {
	all := true
	for i := range c.blocks {
		if st := b.status(c, i); st.load() == statusFree {
			st.store(statusMoving)
		} else {
			all = false
		}
	}
	return all || b.unseize(c)
}

// unseize makes the moving blocks of c free, and reports whether all blocks are free now. It clears
// the bits of the other blocks, which have owners.
func (b *Blocks) unseize(c *chunk) bool {
	for i := range c.blocks {
		if st := b.status(c, i); st.load() == statusMoving {
			st.store(statusFree)
		} else {
			c.free[i/64] &^= 1 << (i % 64)
			c.freeBlocks--
		}
	}
	return c.freeBlocks == int(c.blocks)
}

// askParent panics if the parent is closed: reading metadata in its memory would fault.
func (b *Blocks) askParent(call string) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	if len(b.central.chunks) > 0 {
		owners.AskParent(call, b.parent)
	}
}

func init() {
	owners.AddTraits(func(parent any) (t owners.Traits, ok bool) {
		b, ok := parent.(*Blocks)
		if ok {
			t.Closed = &b.central.closed
		}
		return t, ok
	})
}

// close returns all chunks to the parent.
func (b *Blocks) close(call string) {
	b.mustBeMade(call)
	b.askParent(call)
	b.mustBeUnguarded(call)
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	if b.central.closed.Load() {
		return
	}
	b.mustBePoison(call)
	b.retireList.clear()
	b.central.closed.Store(true)
	owners.Closed(b)
	b.eachCache((*cache).forget)
	b.central.caches = 0
	b.stacks.Clear()
	b.release(func(*chunk) bool { return true })
	b.giveSpare()
}

// release returns the chunks that match to the parent. It first replaces the table by one without
// them, and waits until each holder of a slot has left, so no goroutine reads their metadata any
// more. It drops their entries on stacks. A chunk stays if a holder handed out one of its blocks
// after all, because it found the block free before the chunk was seized. central.mu is held.
func (b *Blocks) release(match func(*chunk) bool) {
	t := &b.central
	var gone, kept []*chunk
	for _, c := range t.chunks {
		if match(c) {
			gone = append(gone, c)
		} else {
			kept = append(kept, c)
		}
	}
	if len(gone) == 0 {
		return
	}
	b.keep(kept)
	b.stacks.Drain(nil, func(taken []*stack) {
		for _, s := range taken {
			b.returnTo(s.entries[:s.n.load()], statusFree)
		}
	})
	for _, c := range gone {
		if !t.closed.Load() && !b.unseize(c) {
			b.keep(append(t.chunks, c))
			continue
		}
		t.blocks -= int(c.blocks)
		b.give(c)
	}
}

// keep makes chunks the pool's only chunks.
func (b *Blocks) keep(chunks []*chunk) {
	t := &b.central
	t.chunks, t.partial = chunks, nil
	for _, c := range chunks {
		c.partial = false
		if c.freeBlocks > 0 {
			b.setPartial(c)
		}
	}
	b.retable(0)
}
