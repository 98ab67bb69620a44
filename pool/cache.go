// Caches: free blocks of one goroutine.
//
// A cache is a stack that its owner has to itself without holding a place. It
// draws on the central as the processors' stacks do.

package pool

import "unsafe"

// cache is what Cache and BlockCache have in common.
type cache struct {
	stack
	blocks *Blocks
	closed bool
}

// open makes c a cache of b.
func (c *cache) open(b *Blocks) {
	c.blocks, c.room = b, b.room
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen("Cache")
	if b.central.caches == nil {
		b.central.caches = map[*cache]struct{}{}
	}
	b.central.caches[c] = struct{}{}
}

// get returns a free block, which is live from then on.
func (c *cache) get() (unsafe.Pointer, error) {
	if n := c.n.load() - 1; n < fullStackBlocks {
		e := &c.entries[n]
		if st := state(e.state); *st == stateFree {
			*st = stateLive
			c.n.store(n)
			return cleared(e.addr, c.blocks.zero)
		}
	}
	return c.refill()
}

// refill is get where the stack has no block to give.
func (c *cache) refill() (unsafe.Pointer, error) {
	c.mustBeOpen()
	if n := c.n.load(); n > 0 {
		c.n.store(n - 1)
		freedTwice(c.entries[n-1].addr)
	}
	n, err := c.blocks.take(c.entries[:c.blocks.room/2])
	if err != nil {
		return nil, err
	}
	e := c.entries[n-1]
	*state(e.state) = stateLive
	c.n.store(uint64(n - 1))
	return cleared(e.addr, c.blocks.zero)
}

// put takes back the block at p.
func (c *cache) put(p unsafe.Pointer) {
	if done, _ := c.blocks.push(&c.stack, uintptr(p)); !done {
		c.putSlow(p)
	}
}

// putSlow is put where the stack is full, or there is no such block.
func (c *cache) putSlow(p unsafe.Pointer) {
	c.mustBeOpen()
	var oldest [fullStackBlocks / 2]entry
	if c.n.load() >= c.room {
		c.blocks.giveBack(oldest[:c.moveOldest(oldest[:c.blocks.room/2])])
	}
	if done, _ := c.blocks.push(&c.stack, uintptr(p)); !done {
		c.blocks.misused("Put", uintptr(p), "")
	}
}

func (c *cache) mustBeOpen() {
	if c.closed {
		panic("freehold: a Cache was used after its Close")
	}
}

// close gives the blocks back.
func (c *cache) close() {
	if c.closed {
		return
	}
	c.closed = true
	c.room = 0
	b := c.blocks
	n := c.n.load()
	c.n.store(0)
	b.giveBack(c.entries[:n])
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	delete(b.central.caches, c)
}

// BlockCache is free blocks of a [Blocks] for one goroutine at a time, which
// takes and puts them without asking who else is there. It holds up to 128
// blocks that nobody else can have.
//
// What it detects it detects as its pool does, at the call.
type BlockCache struct{ cache cache }

// Cache returns an empty cache. Its Close gives its blocks back; one that is
// dropped without Close keeps them until the pool's Reset or Close.
func (b *Blocks) Cache() *BlockCache {
	c := &BlockCache{}
	c.cache.open(b)
	return c
}

// Get returns a block, contents undefined, with the errors of Alloc.
func (c *BlockCache) Get() ([]byte, error) {
	p, err := fastCacheGet(&c.cache)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), c.cache.blocks.bytes), nil
}

// Put frees a block of the pool, wherever it was taken. It panics as
// [Blocks.Free] does.
func (c *BlockCache) Put(r []byte) {
	if len(r) > 0 {
		c.cache.blocks.mustBeWhole("Put", r)
		fastCachePut(&c.cache, unsafe.Pointer(unsafe.SliceData(r)))
	}
}

// Close gives the cache's free blocks back to the pool. Get and Put panic from
// then on.
func (c *BlockCache) Close() { c.cache.close() }

// Cache is free values of a [Pool] for one goroutine at a time, which gets and
// puts them without asking who else is there. It holds up to 128 values that
// nobody else can have.
//
// What it detects it detects as its pool does, at the call.
type Cache[T any] struct{ cache cache }

// Get returns a zero T, with the errors of [Pool.Get].
func (c *Cache[T]) Get() (*T, error) {
	p, err := fastCacheGet(&c.cache)
	return (*T)(p), err
}

// Put takes back a value of the pool, wherever it was got. It panics as
// [Pool.Put] does.
func (c *Cache[T]) Put(t *T) { fastCachePut(&c.cache, unsafe.Pointer(t)) }

// Close gives the cache's free values back to the pool. Get and Put panic from
// then on.
func (c *Cache[T]) Close() { c.cache.close() }
