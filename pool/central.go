// Central: the free list behind the per-processor stacks.
//
// Chunks with free blocks are on a stack. A chunk that was full and gets a block
// back goes on top, so blocks come from few chunks. A batch takes neighbouring
// blocks.

package pool

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/owners"
)

// central is guarded by mu. The parent is called under mu.
//
// Invariants:
//   - blocks == sum of blocks over chunks, and <= MaxBlocks if there is one
//   - bytes == sum of the lengths of mem and metadata over chunks, plus those of
//     spare, and <= MaxBytes if there is one
//   - spare is empty if caches == 0
//   - a block is on a stack, in a cache, retired, live, or its bit in free is set
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

// take moves up to len(out) free blocks to out and returns their number: at least one,
// or the error of a failed grow.
func (b *Blocks) take(call string, out []entry) (int, error) {
	b.collect(false)
	n, err := b.tryTake(call, out)
	if err == nil {
		return n, nil
	}
	// Other goroutines may have free blocks on stacks or between stacks. Take
	// one block at a time, to leave blocks for the others that run out.
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

// maxTries is how often take tries while another goroutine is moving a free block. It
// yields patientTries times, and sleeps from then on.
const (
	patientTries = 30
	maxTries     = 1000
)

// tryTake is take without collecting and draining.
func (b *Blocks) tryTake(call string, out []entry) (int, error) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen(call)
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
		n += b.carve(c, out[n:])
	}
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

// carve moves free blocks of c to out, from low addresses to high ones.
func (b *Blocks) carve(c *chunk, out []entry) (n int) {
	for w := 0; w < len(c.free) && n < len(out); w++ {
		for c.free[w] != 0 && n < len(out) {
			i := uintptr(w*64 + bits.TrailingZeros64(c.free[w]))
			c.free[w] &= c.free[w] - 1
			out[n] = entry{c.base + i*b.stride, c.statuses + i<<b.statusShift}
			n++
		}
	}
	c.freeBlocks -= n
	return n
}

// giveBack returns free blocks of a stack or a cache to their chunks.
func (b *Blocks) giveBack(in []entry) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	var c *chunk // of the previous entry
	for _, e := range in {
		if c == nil || e.addr-c.base >= 1<<b.shift {
			c = b.chunkOf(e.addr)
		}
		if c == nil || statusAt(e.status).load() != statusFree {
			continue // freed by two goroutines at once: its chunk is gone, or it is live again
		}
		i := b.index(e.addr - c.base)
		if c.free[i/64]&(1<<(i%64)) != 0 {
			continue // freed by two goroutines at once: in its chunk already
		}
		c.free[i/64] |= 1 << (i % 64)
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
	b.limbo.clear()
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen(call)
	b.eachCache((*BlocksCache).forget)
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
	b.release(func(c *chunk) bool { return c.freeBlocks == int(c.blocks) })
}

// askParent panics with the parent's message if the parent is closed: reading metadata
// in its memory would fault.
func (b *Blocks) askParent() {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	if len(b.central.chunks) == 0 {
		return
	}
	if block, err := b.parent.Alloc(1, 1); err == nil { // an error shows that it is open, too
		b.parent.Free(block)
	}
}

// close returns all chunks to the parent.
func (b *Blocks) close(call string) {
	b.mustBeMade(call)
	b.askParent()
	b.mustBeUnguarded(call)
	b.limbo.clear()
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	if b.central.closed.Load() {
		return
	}
	b.central.closed.Store(true)
	owners.Closed(b)
	b.eachCache((*BlocksCache).forget)
	b.central.caches = 0
	b.stacks.Clear()
	b.release(func(*chunk) bool { return true })
	b.giveSpare()
}

// release returns the chunks that match to the parent. It first replaces the table by
// one without them, and waits until each holder of a slot has left: no goroutine reads
// their metadata then. central.mu is held.
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
	t.chunks, t.partial = kept, nil
	for _, c := range kept {
		c.partial = false
		if c.freeBlocks > 0 {
			b.setPartial(c)
		}
	}
	b.retable(0)
	b.stacks.Wait()
	for _, c := range gone {
		t.blocks -= int(c.blocks)
		b.give(c)
	}
}
