// Caches: free blocks of one goroutine.
//
// A cache is a stack that its owner has to itself, and remembers the blocks that
// it handed out last:
//
//	entries | 0 | a | b | c | d | e | - | - |
//	                      ^top: a, b and c are in, d and e are out
//
// The state of such a block is the cache's number and its place. So Get only
// steps down, and Put of the block above the top steps up: small enough for the
// compiler to put them into the caller. A block is in the cache if it stands at
// the place that its state names, and that is not above the top. All else that
// has such a state is live: it left the cache, and another block may have taken
// its place since.
//
// Get and Put look whether the states of the blocks name their places. They do
// not where there is no block, and where another goroutine put the same block
// back at the same moment.

package pool

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// BlocksCache is free blocks of a [Blocks] for one goroutine at a time, which
// takes and puts them without asking who else is there. It holds up to 128
// blocks that nobody else can have, and must not be copied. It comes from
// [Blocks.NewCache]: Put and Close of the zero value panic and name that, and
// Get faults, which is a panic too. A pair of Get and
// Put of 64 B takes 2 ns if what was taken last is put first, 10 in another
// order, and 30 if another goroutine's cache took the block (BenchmarkPair,
// BenchmarkCacheOrder).
//
// What it detects it detects as its pool does, at the call.
type BlocksCache struct {
	_ noCopy

	// Only the owner writes these two. Others read them to find out whether a
	// block that they put back is free: if it is theirs, it is not, whatever
	// the owner does meanwhile.
	//
	// Invariants:
	//   - top == number<<placeBits + how many blocks are in
	//   - a block that is in, and was not freed by two at once, has the state
	//     number<<placeBits + its place
	//   - an entry above the top is a sentinel, or a block that the cache had
	top     state
	entries [1 << placeBits]held

	number state
	bytes  int // in a block
	blocks *Blocks
	room   int // blocks that may be in; 0 when closed
	closed bool

	// Caches are 6 KiB, so that they all lie alike in their pages: an entry that
	// lies as its block does costs 3 ns, and after a refill that begins a page.
	_ [1280]byte
}

// held is an entry of a cache.
type held struct {
	addr  address
	state *state
}

// Places are 1 to fullStackBlocks. The one above is there for the Put that finds
// the cache full, and place 0 for the Get that finds it empty.
const (
	placeBits = 8
	places    = 1<<placeBits - 1
)

const _ = uint(places - fullStackBlocks - 1)

// sentinel is a state that names no place: that of entries without a block.
var sentinel state

// open makes c a cache of b.
func (c *BlocksCache) open(call string, b *Blocks) {
	c.blocks, c.bytes, c.room = b, b.bytes, int(b.room)
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen(call)
	c.number = b.enroll(call, c)
	c.forget()
}

// enroll gives c a number. central.mu is held.
func (b *Blocks) enroll(call string, c *BlocksCache) state {
	b.central.caches++
	all := *b.caches.Load()
	for i := 1; i < len(all); i++ {
		if all[i].CompareAndSwap(nil, c) {
			return state(i)
		}
	}
	i := max(len(all), 1)
	if i > maxCaches {
		arg.Panicf(call, "the pool of %s has %d open caches", b.contents(), maxCaches)
	}
	more := make([]atomic.Pointer[BlocksCache], 2*i)
	for j := range all {
		more[j].Store(all[j].Load())
	}
	more[i].Store(c)
	b.caches.Store(&more)
	return state(i)
}

const maxCaches = 1<<(32-placeBits) - 1

// eachCache calls f for the open caches. central.mu is held.
func (b *Blocks) eachCache(f func(*BlocksCache)) {
	all := *b.caches.Load()
	for i := range all {
		if c := all[i].Load(); c != nil {
			f(c)
		}
	}
}

// cacheOf returns the cache that st names, nil if that is closed.
func (b *Blocks) cacheOf(st state) *BlocksCache {
	all := *b.caches.Load()
	if i := int(st >> placeBits); i < len(all) {
		return all[i].Load()
	}
	return nil
}

// has reports whether the block at addr with the state st is in the cache.
func (c *BlocksCache) has(st state, addr uintptr) bool {
	place := st & places
	return place <= c.top.load()&places && c.entries[place].addr.load() == addr
}

// len returns how many blocks are in the cache.
func (c *BlocksCache) len() int { return int(c.top.load() & places) }

// forget makes the cache an empty one that remembers nothing.
func (c *BlocksCache) forget() {
	c.top.store(c.number << placeBits)
	for i := range c.entries {
		e := &c.entries[i]
		e.addr.store(0)
		e.state = &sentinel
	}
}

// set makes e the entry at a place.
func (c *BlocksCache) set(place int, e entry) {
	st := stateAt(e.state)
	st.store(c.number<<placeBits + state(place))
	c.entries[place].addr.store(e.addr)
	c.entries[place].state = st
}

// refill gets Get a block where there is none at the top. It leaves its address
// in that entry, and the top one too high, as if it had been there.
func (c *BlocksCache) refill() error {
	c.mustBeOpen(c.getCall())
	if at := c.len(); at > 0 {
		c.top.dec()
		c.blocks.misused(c.getCall(), uintptr(c.entries[at].addr), freedTwice)
	}
	var batch [fullStackBlocks / 2]entry
	n, err := c.blocks.take(c.getCall(), batch[:c.room/2])
	if err != nil {
		return err
	}
	for i, e := range batch[:n] {
		c.set(i+1, e)
	}
	c.entries[0].addr.store(batch[n-1].addr)
	c.top.store(c.number<<placeBits + state(n))
	return nil
}

// put is Put of any block but the one that was handed out last, and of nil.
func (c *BlocksCache) put(p unsafe.Pointer) {
	if p == nil {
		return
	}
	addr := uintptr(p)
	if c.len() >= c.room {
		c.mustBeMade(c.putCall())
		c.mustBeOpen(c.putCall())
		c.giveOldest(c.room / 2)
	}
	b := c.blocks
	st := b.stateOf(addr)
	if !b.isLive(st, addr) {
		b.misused(c.putCall(), addr, "")
	}
	if b.counted {
		st.age()
	}
	c.set(c.len()+1, entry{addr, uintptr(unsafe.Pointer(st))})
	c.top.inc()
}

// giveOldest gives the n lowest blocks back.
func (c *BlocksCache) giveOldest(n int) {
	all := c.len()
	c.top.store(c.top - state(n))
	var oldest [fullStackBlocks]entry
	moved := 0
	for i := 1; i <= all; i++ {
		e := c.entries[i]
		if *e.state != c.number<<placeBits+state(i) {
			if i > n { // freed by two at once: Get will say so
				c.entries[i-n].addr.store(uintptr(e.addr))
				c.entries[i-n].state = e.state
			}
			continue
		}
		free := entry{uintptr(e.addr), uintptr(unsafe.Pointer(e.state))}
		if i > n {
			c.set(i-n, free)
		} else {
			e.state.store(stateFree)
			oldest[moved] = free
			moved++
		}
	}
	c.blocks.giveBack(oldest[:moved])
}

// close gives the blocks back.
func (c *BlocksCache) close(call string) {
	c.mustBeMade(call)
	if c.closed {
		return
	}
	c.closed, c.room = true, 0
	c.giveOldest(c.len())
	c.forget()
	b := c.blocks
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	if b.central.closed {
		return
	}
	(*b.caches.Load())[c.number].Store(nil)
	b.central.caches--
	b.giveSides()
}

// giveSides gives the sides that caches remembered back, if none is open.
// central.mu is held.
func (b *Blocks) giveSides() {
	t := &b.central
	if t.caches == 0 {
		for _, side := range t.sides {
			b.giveSide(side)
		}
		t.sides = nil
	}
}

// NewCache returns an empty cache, of 6 KiB on the Go heap. Its Close gives its
// blocks back; one that is dropped without Close keeps them until the pool's
// Reset or Close. While one is open, Trim keeps what it knows of the blocks in
// the chunks that it gives back, for the next chunks.
func (b *Blocks) NewCache() *BlocksCache {
	c := &BlocksCache{}
	c.open("pool.Blocks.NewCache", b)
	return c
}

// Get returns a block, contents undefined, with the errors of Alloc.
func (c *BlocksCache) Get() (block []byte, err error) {
	e := &c.entries[uint8(c.top)]
	if *e.state != c.top {
		if err = orRefill(c, (*BlocksCache).refill); err != nil {
			return
		}
	}
	c.top.dec()
	return unsafe.Slice((*byte)(e.pointer()), c.bytes), nil
}

// Put frees a block of the pool, wherever it was taken. It panics as
// [Blocks.Free] does.
func (c *BlocksCache) Put(r []byte) {
	up := c.top + 1
	e := &c.entries[uint8(up)]
	if e.addr == address(unsafe.Pointer(unsafe.SliceData(r))) && e.state.load() == up && len(r) == c.bytes && cap(r) == c.bytes {
		c.top.inc()
	} else {
		orPutBytes(c, r, (*BlocksCache).putBytes)
	}
}

func (c *BlocksCache) putBytes(r []byte) {
	if len(r) > 0 {
		c.mustBeMade("pool.BlocksCache.Put")
		c.blocks.mustBeWhole("pool.BlocksCache.Put", r)
		c.put(unsafe.Pointer(unsafe.SliceData(r)))
	}
}

// Close gives the cache's free blocks back to the pool. Get and Put panic from
// then on.
func (c *BlocksCache) Close() { c.close("pool.BlocksCache.Close") }

// Cache is free values of a [Pool] for one goroutine at a time, which gets and
// puts them without asking who else is there. It holds up to 128 values that
// nobody else can have, and must not be copied. It comes from [Pool.NewCache]:
// Put and Close of the zero value panic and name that, and Get faults, which is a
// panic too. It costs what [BlocksCache] does.
//
// What it detects it detects as its pool does, at the call.
type Cache[T any] struct{ cache BlocksCache }

// Get returns a zero T, with the errors of [Pool.Get].
func (c *Cache[T]) Get() (t *T, err error) {
	s := &c.cache
	e := &s.entries[uint8(s.top)]
	if *e.state != s.top {
		if err = orRefill(s, (*BlocksCache).refill); err != nil {
			return
		}
	}
	s.top.dec()
	t = (*T)(e.pointer())
	var zero T
	*t = zero
	return
}

// Put takes back a value of the pool, wherever it was got. It panics as
// [Pool.Put] does.
func (c *Cache[T]) Put(t *T) {
	s := &c.cache
	up := s.top + 1
	e := &s.entries[uint8(up)]
	if e.addr == address(unsafe.Pointer(t)) && e.state.load() == up {
		s.top.inc()
		e.state.age()
	} else {
		orPut(s, unsafe.Pointer(t), (*BlocksCache).put)
	}
}

// Close gives the cache's free values back to the pool. Get and Put panic from
// then on.
func (c *Cache[T]) Close() { c.cache.close("pool.Cache.Close") }

// Get and Put call what they seldom need by way of these functions: the compiler
// puts no function into its caller that calls much, and a call of a parameter
// counts for less with it. Cache.Put is as large as may be: go test -gcflags=-m
// says whether it still goes in.

func orRefill(c *BlocksCache, f func(*BlocksCache) error) error { return f(c) }

func orPut(c *BlocksCache, p unsafe.Pointer, f func(*BlocksCache, unsafe.Pointer)) { f(c, p) }

func orPutBytes(c *BlocksCache, r []byte, f func(*BlocksCache, []byte)) { f(c, r) }
