// The same cache on the Go heap, for comparison, as one writes it without freehold.
// It limits the bytes of its values, but cannot count their overhead or garbage.

package main

import (
	"container/list"
	"slices"
	"sync"
)

type goCache struct {
	maxBytes int

	mu      sync.Mutex
	index   map[uint64]*list.Element // each a *goEntry
	ages    list.List                // newest first
	bytes   int
	evicted int
}

type goEntry struct {
	key   uint64
	value []byte
}

func newGoCache(maxBytes int) *goCache {
	return &goCache{maxBytes: maxBytes, index: map[uint64]*list.Element{}}
}

// Get is Cache.Get.
func (c *goCache) Get(key uint64, dst []byte) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.index[key]
	if !ok {
		return dst, false
	}
	c.ages.MoveToFront(e)
	return append(dst, e.Value.(*goEntry).value...), true
}

// Put is Cache.Put.
func (c *goCache) Put(key uint64, value []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.index[key]; ok {
		c.remove(e)
	}
	if len(value) > c.maxBytes {
		return ErrTooLarge
	}
	for c.bytes+len(value) > c.maxBytes {
		c.remove(c.ages.Back())
		c.evicted++
	}
	c.bytes += len(value)
	c.index[key] = c.ages.PushFront(&goEntry{key, slices.Clone(value)})
	return nil
}

// Len is Cache.Len.
func (c *goCache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.index)
}

func (c *goCache) remove(e *list.Element) {
	old := c.ages.Remove(e).(*goEntry)
	delete(c.index, old.key)
	c.bytes -= len(old.value)
}
