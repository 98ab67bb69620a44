// Caches: unsynchronized free lists of one goroutine.
//
// A cache is a stack of free blocks with one owner. The entries above its top are the blocks that
// it handed out last:
//
//	entries | 0 | a | b | c | d | e | - | - |
//	                      ^top: a, b and c are in, d and e are out
//
// The status of these blocks, in and out, is the number of the cache and the block's place in it.
// So Get only decrements the top, and Put of the block above the top only increments it: the
// compiler inlines both. A block is in the cache if its status names an entry that holds it and is
// not above the top. Any other block whose status names the cache is live: it left the cache, and
// another block may now have its entry.
//
// Get and Put check that the status of the entry's block names the entry. The check fails if the
// entry is empty, or if another goroutine freed the same block concurrently.

package pool

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
)

// cache is a [Cache] without its type: it has free blocks for one goroutine at a time.
type cache struct {
	_ container.NoCopy

	// Only the owner writes top and entries. Other goroutines read them when they free a block, to
	// check that it is not free already. Concurrent calls of the owner do not change the result: a
	// live block is never in the cache.
	//
	// Invariants:
	//   - top == number<<placeBits + the number of blocks in the cache
	//   - a block in the cache has the status number<<placeBits + its place, unless two goroutines
	//     freed it concurrently
	//   - an entry above the top is a sentinel or a block that was in the cache
	top     status
	entries [1 << placeBits]held

	number   status
	blocks   *Blocks
	capacity int // the most blocks in the cache; 0 when closed
	closed   bool

	// Padding to 6 KiB gives all caches the same few offsets in their pages. It avoids 4K aliasing
	// between an entry and its block, since after a refill the blocks begin at a page boundary.
	_ [1280]byte
}

// held is an entry of a cache.
type held struct {
	addr   address
	status *status
}

// Places are 1 to fullStackBlocks. Put reads the place above them when the cache
// is full, and Get reads place 0 when it is empty.
const (
	placeBits = 8
	places    = 1<<placeBits - 1
)

const _ = uint(places - fullStackBlocks - 1)

// sentinel is the status of entries without a block. It names no place.
var sentinel status

// open makes c an empty cache of b.
func (c *cache) open(call string, b *Blocks) {
	c.blocks, c.capacity = b, int(b.capacity)
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	b.mustBeOpen(call)
	c.number = b.enroll(call, c)
	c.forget()
}

// enroll gives c a number. central.mu is held.
func (b *Blocks) enroll(call string, c *cache) status {
	b.central.caches++
	all := *b.caches.Load()
	for i := 1; i < len(all); i++ {
		if all[i].CompareAndSwap(nil, c) {
			return status(i)
		}
	}
	i := max(len(all), 1)
	if i > maxCaches {
		arg.Panicf(call, "the pool of %s has %d open caches", b.contents(), maxCaches)
	}
	more := make([]atomic.Pointer[cache], 2*i)
	for j := range all {
		more[j].Store(all[j].Load())
	}
	more[i].Store(c)
	b.caches.Store(&more)
	return status(i)
}

const maxCaches = 1<<(32-placeBits) - 1

// eachCache calls f for the open caches. central.mu is held.
func (b *Blocks) eachCache(f func(*cache)) {
	all := *b.caches.Load()
	for i := range all {
		if c := all[i].Load(); c != nil {
			f(c)
		}
	}
}

// cacheOf returns the cache that st names, or nil if it is closed.
func (b *Blocks) cacheOf(st status) *cache {
	all := *b.caches.Load()
	if i := int(st >> placeBits); i < len(all) {
		return all[i].Load()
	}
	return nil
}

// has reports whether the block at addr, with the status st, is in the cache.
func (c *cache) has(st status, addr uintptr) bool {
	place := st & places
	return place <= c.top.load()&places && c.entries[place].addr.load() == addr
}

// len returns the number of blocks in the cache.
func (c *cache) len() int { return int(c.top.load() & places) }

// forget makes all entries sentinels.
func (c *cache) forget() {
	c.top.store(c.number << placeBits)
	for i := range c.entries {
		e := &c.entries[i]
		e.addr.store(0)
		e.status = &sentinel
	}
}

// set makes e the entry at a place.
func (c *cache) set(place int, e entry) {
	st := statusAt(e.status)
	st.store(c.number<<placeBits + status(place))
	c.entries[place].addr.store(e.addr)
	c.entries[place].status = st
}

// refill is the slow path of Get. It panics if the block at the top is not free. Otherwise the
// cache is empty, and Get holds a pointer to entry 0. So refill stores the address of the block for
// Get there, and Get then decrements the top as usual.
func (c *cache) refill() error {
	c.mustBeOpen(getOfCache)
	if at := c.len(); at > 0 {
		c.top.dec()
		c.blocks.misused(getOfCache, uintptr(c.entries[at].addr), freedTwice)
	}
	var batch [fullStackBlocks / 2]entry
	n, err := c.blocks.take(getOfCache, batch[:c.capacity/2])
	if err != nil {
		return err
	}
	if c.blocks.checked {
		statusAt(batch[0].status).store(statusLive)
	} else {
		for i, e := range batch[:n] {
			c.set(i+1, e)
		}
	}
	c.entries[0].addr.store(batch[n-1].addr)
	c.top.store(c.number<<placeBits + status(n))
	return nil
}

// put is the slow path of Put: the block is not the one above the top, or p is nil.
func (c *cache) put(p unsafe.Pointer) {
	if p == nil {
		return
	}
	addr := uintptr(p)
	if c.len() >= c.capacity {
		c.mustBeMade(putOfCache)
		c.mustBeOpen(putOfCache)
		c.giveOldest(c.capacity / 2)
	}
	b := c.blocks
	st := b.statusOf(addr)
	if !b.isLive(st, addr) {
		b.misused(putOfCache, addr, "")
	}
	if b.checked {
		b.mustEndUntouched(putOfCache, addr)
		b.putCentral(addr)
		return
	}
	st.age()
	c.set(c.len()+1, entry{addr, uintptr(unsafe.Pointer(st))})
	c.top.inc()
}

// giveOldest returns the n lowest blocks to the central free list.
func (c *cache) giveOldest(n int) {
	all := c.len()
	c.top.store(c.top - status(n))
	var oldest [fullStackBlocks]entry
	moved := 0
	for i := 1; i <= all; i++ {
		e := c.entries[i]
		if *e.status != c.number<<placeBits+status(i) {
			if i > n { // two goroutines freed it concurrently: Get will panic
				c.entries[i-n].addr.store(uintptr(e.addr))
				c.entries[i-n].status = e.status
			}
			continue
		}
		free := entry{uintptr(e.addr), uintptr(unsafe.Pointer(e.status))}
		if i > n {
			c.set(i-n, free)
		} else {
			e.status.store(statusFree)
			oldest[moved] = free
			moved++
		}
	}
	c.blocks.giveBack(oldest[:moved], statusFree)
}

// close returns the blocks to the central free list.
func (c *cache) close() {
	c.mustBeMade("pool.Cache.Close")
	if c.closed {
		return
	}
	c.closed, c.capacity = true, 0
	c.giveOldest(c.len())
	c.forget()
	b := c.blocks
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	if b.central.closed.Load() {
		return
	}
	(*b.caches.Load())[c.number].Store(nil)
	b.central.caches--
	b.giveSpare()
}

// giveSpare returns the spare metadata to the parent if no cache is open. central.mu is held.
func (b *Blocks) giveSpare() {
	t := &b.central
	if t.caches == 0 {
		for _, metadata := range t.spare {
			b.giveMetadata(metadata)
		}
		t.spare = nil
	}
}

// NewCache returns an empty [Cache], of 6 KiB on the Go heap. Its Close gives its values back to
// the pool. A cache that is dropped without Close keeps them until the pool's Reset or Close. While
// a cache is open, Trim keeps the metadata of returned chunks for the next chunks. NewCache panics
// if the pool is closed or has 16,777,215 open caches.
func (p *Pool[T]) NewCache() *Cache[T] {
	c := &Cache[T]{}
	c.cache.open("pool.Pool.NewCache", &p.blocks)
	return c
}

// Cache holds up to 128 free values of a [Pool] for one goroutine at a time, which gets and puts
// them without synchronization. No other goroutine can get these values. A Cache must not be
// copied. It detects the same misuse as its pool, at the call.
//
// Get and Put are fastest if the value got last is put first; BenchmarkPair and
// BenchmarkCacheOrder measure this and other orders.
//
// Pool.NewCache makes a Cache. Put and Close of the zero value panic and name it;
// Get panics with a nil dereference.
type Cache[T any] struct{ cache cache }

// Get returns a zero T, with the errors of [Pool.Get]. Any of the pool's calls takes it too:
// [Pool.Put], [Pool.Retire] and [Pool.PutHandle].
func (c *Cache[T]) Get() (t *T, err error) {
	s := &c.cache
	e := &s.entries[uint8(s.top)]
	if *e.status != s.top {
		if err = orRefill(s, (*cache).refill); err != nil {
			return
		}
	}
	s.top.dec()
	t = (*T)(e.pointer())
	var zero T
	*t = zero
	return
}

// Put frees a value of the pool, from any cache or call. It panics as [Pool.Put] does.
func (c *Cache[T]) Put(t *T) {
	s := &c.cache
	up := s.top + 1
	e := &s.entries[uint8(up)]
	if e.addr == address(unsafe.Pointer(t)) && e.status.load() == up {
		s.top.inc()
		e.status.age()
	} else {
		orPut(s, unsafe.Pointer(t), (*cache).put)
	}
}

// Close gives the cache's free values back to the pool. Later calls of Get and Put
// panic.
func (c *Cache[T]) Close() { c.cache.close() }

// Slow paths go through parameters of these functions to stay within the inliner's
// budget, which a direct call would exceed. Cache.Put is at the limit: go test
// -gcflags=-m says whether it is still inlined.

func orRefill(c *cache, f func(*cache) error) error { return f(c) }

func orPut(c *cache, p unsafe.Pointer, f func(*cache, unsafe.Pointer)) { f(c, p) }
