// Cache: an LRU whose values an account pays for.
//
// Nobody counts bytes. A Put that the account has no room for evicts the oldest values.

package main

import (
	"container/list"
	"sync"

	"github.com/freehold-go/freehold/budget"
)

// Cache keeps the values used last that fit its account. It is safe for concurrent use.
type Cache struct {
	account *budget.Account

	mu      sync.Mutex // guards all fields below
	entries map[string]*list.Element
	order   list.List // of entry, the oldest first
}

type entry struct {
	key   string
	value []byte // off-heap
}

// NewCache returns an empty cache. Close frees its values, and the account is the caller's.
func NewCache(account *budget.Account) *Cache {
	return &Cache{account: account, entries: map[string]*list.Element{}}
}

// Get appends the value of key to dst and reports whether there is one. It copies, as any Put
// may evict the value.
func (c *Cache) Get(key string, dst []byte) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[key]
	if !ok {
		return dst, false
	}
	c.order.MoveToBack(at)
	return append(dst, at.Value.(entry).value...), true
}

// Put stores a copy of value. The error matches freehold.ErrOutOfMemory if the value has no
// room after evictions. Then key has no value.
func (c *Cache) Put(key string, value []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.entries[key]; ok {
		c.remove(at)
	}
	kept, err := c.account.AllocOrEvict(len(value), 1, c.evict)
	if err != nil {
		return err
	}
	copy(kept, value)
	c.entries[key] = c.order.PushBack(entry{key, kept})
	return nil
}

// Shrink frees the oldest values, bytes in sum if there are so many, and gives their memory
// back.
func (c *Cache) Shrink(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evict(bytes)
	c.account.Trim()
}

// Close frees all values. The cache is then empty and may be used again.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.order.Len() > 0 {
		c.remove(c.order.Front())
	}
}

// Len returns the number of values.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// evict frees the oldest values until it has freed so many bytes. The cache is locked.
func (c *Cache) evict(bytes int) (freed int) {
	for freed < bytes && c.order.Len() > 0 {
		freed += c.remove(c.order.Front())
	}
	return freed
}

// remove frees a value. The cache is locked.
func (c *Cache) remove(at *list.Element) (freed int) {
	e := c.order.Remove(at).(entry)
	delete(c.entries, e.key)
	c.account.Free(e.value)
	return len(e.value)
}
