// LRU: values off-heap, evicted when their allocator refuses.
//
//	index    key -> index in entries
//	entries  | ring | entry 1 | entry 2 | ...     older and newer are indices
//	                     |
//	values               +--> a block off-heap
//
// Neither the map nor the slice holds pointers, so the collector sees two objects
// for any number of values.

package main

import (
	"errors"
	"fmt"
	"sync"

	"github.com/freehold-go/freehold"
)

// ErrTooLarge is returned for a value larger than the cache accepts.
var ErrTooLarge = errors.New("the value is larger than the cache keeps")

// maxEvictions limits the evictions of one Put. Evicted values of other sizes leave
// holes that the new one may not fit, so evicting until it fits could empty the
// cache.
const maxEvictions = 1000

// Cache keeps the most recently used values that fit its allocator. It is safe for
// concurrent use.
type Cache struct {
	memory   freehold.Allocator
	maxValue int

	mu      sync.Mutex
	index   map[uint64]uint32
	entries []entry  // entries[ring] is the sentinel: its older is the newest entry, its newer the oldest
	unused  []uint32 // unused indices in entries
	evicted int
}

type entry struct {
	key          uint64
	value        freehold.Slice[byte]
	older, newer uint32
}

const ring = 0

// NewCache returns an empty cache of values up to maxValue bytes. memory limits it,
// such as a Heap with MaxBytes. Close returns the memory.
func NewCache(memory freehold.Allocator, maxValue int) *Cache {
	return &Cache{memory: memory, maxValue: maxValue, index: map[uint64]uint32{}, entries: make([]entry, 1)}
}

// Get appends the value of key to dst and reports whether there is one. It copies,
// because any Put may evict the value.
func (c *Cache) Get(key uint64, dst []byte) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.index[key]
	if !ok {
		return dst, false
	}
	c.unlink(at)
	c.linkNewest(at)
	return append(dst, c.entries[at].value.Get()...), true
}

// Put stores a copy of value. The error is ErrTooLarge, or matches
// freehold.ErrOutOfMemory if there is no room after maxEvictions or with nothing
// left to evict. After an error, key has no value.
func (c *Cache) Put(key uint64, value []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.index[key]; ok {
		c.remove(at)
	}
	if len(value) > c.maxValue { // no eviction could help
		return ErrTooLarge
	}
	kept, err := c.makeRoom(len(value))
	if err != nil {
		return err
	}
	copy(kept, value)
	at := c.place()
	c.entries[at].key, c.entries[at].value = key, freehold.SliceOf(kept)
	c.index[key] = at
	c.linkNewest(at)
	return nil
}

// makeRoom allocates, and evicts the oldest values while that fails.
func (c *Cache) makeRoom(size int) ([]byte, error) {
	for n := 0; ; n++ {
		b, err := c.memory.Alloc(size, 1)
		oldest := c.entries[ring].newer
		switch {
		case err == nil:
			return b, nil
		case n == maxEvictions || oldest == ring || !errors.Is(err, freehold.ErrOutOfMemory):
			return nil, fmt.Errorf("no room after %d evictions: %w", n, err)
		}
		c.remove(oldest)
		c.evicted++
	}
}

// Len returns the number of values.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.index)
}

// Evicted returns the number of values evicted so far.
func (c *Cache) Evicted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicted
}

// Close frees all values. The cache is then empty and may be used again.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := c.entries[ring].newer; at != ring; at = c.entries[ring].newer {
		c.remove(at)
	}
}

// remove frees the value of an entry, and the entry.
func (c *Cache) remove(at uint32) {
	e := &c.entries[at]
	c.memory.Free(e.value.Get())
	delete(c.index, e.key)
	c.unlink(at)
	c.unused = append(c.unused, at)
}

// place returns the index of an unused entry.
func (c *Cache) place() uint32 {
	if n := len(c.unused); n > 0 {
		at := c.unused[n-1]
		c.unused = c.unused[:n-1]
		return at
	}
	c.entries = append(c.entries, entry{})
	return uint32(len(c.entries) - 1)
}

func (c *Cache) linkNewest(at uint32) {
	newest := c.entries[ring].older
	c.entries[at].older, c.entries[at].newer = newest, ring
	c.entries[newest].newer, c.entries[ring].older = at, at
}

func (c *Cache) unlink(at uint32) {
	e := c.entries[at]
	c.entries[e.older].newer, c.entries[e.newer].older = e.newer, e.older
}
