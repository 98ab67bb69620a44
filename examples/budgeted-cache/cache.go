// Cache: an LRU in shards, whose values an account pays for.
//
// Nobody counts bytes. A Put that the account has no room for evicts the oldest values.

package main

import (
	"container/list"
	"hash/maphash"
	"sync"

	"github.com/freehold-go/freehold/budget"
)

// Cache keeps the values used last that fit its account. It is safe for concurrent use.
type Cache struct {
	account *budget.Account
	seed    maphash.Seed
	shards  [16]shard
}

// mu guards all fields. A goroutine that has one shard locked only tries to lock another.
type shard struct {
	mu      sync.Mutex
	entries map[string]*list.Element
	order   list.List // of entry, the oldest first
}

type entry struct {
	key   string
	value []byte // off-heap
}

// NewCache returns an empty cache. Close frees its values, and the account is the caller's.
func NewCache(account *budget.Account) *Cache {
	c := &Cache{account: account, seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].entries = map[string]*list.Element{}
	}
	return c
}

func (c *Cache) shard(key string) *shard {
	return &c.shards[maphash.String(c.seed, key)%uint64(len(c.shards))]
}

// Get appends the value of key to dst and reports whether there is one. It copies, as any Put
// may evict the value.
func (c *Cache) Get(key string, dst []byte) ([]byte, bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.entries[key]
	if !ok {
		return dst, false
	}
	s.order.MoveToBack(at)
	return append(dst, at.Value.(entry).value...), true
}

// Put stores a copy of value. The error matches freehold.ErrOutOfMemory if the value has no
// room after evictions. Then key has no value.
func (c *Cache) Put(key string, value []byte) error {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.entries[key]; ok {
		c.remove(s, at)
	}
	kept, err := c.account.AllocOrEvict(len(value), 1, func(bytes int) int { return c.evict(s, bytes) })
	if err != nil {
		return err
	}
	copy(kept, value)
	s.entries[key] = s.order.PushBack(entry{key, kept})
	return nil
}

// evict frees the oldest values of s, which is locked, and then those of shards that nobody has
// locked: a value may be larger than all of its shard.
func (c *Cache) evict(s *shard, bytes int) (freed int) {
	freed = c.removeOldest(s, bytes)
	for i := range c.shards {
		if other := &c.shards[i]; freed < bytes && other != s && other.mu.TryLock() {
			freed += c.removeOldest(other, bytes-freed)
			other.mu.Unlock()
		}
	}
	return freed
}

// Shrink frees the oldest values of all shards, bytes in sum if there are so many, and gives
// their memory back.
func (c *Cache) Shrink(bytes int) (freed int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		freed += c.removeOldest(s, (bytes-freed)/(len(c.shards)-i))
		s.mu.Unlock()
	}
	c.account.Trim()
	return freed
}

// Close frees all values. The cache is then empty and may be used again.
func (c *Cache) Close() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for s.order.Len() > 0 {
			c.remove(s, s.order.Front())
		}
		s.mu.Unlock()
	}
}

// Len returns the number of values.
func (c *Cache) Len() (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}

// removeOldest frees values of s, which is locked, until it has freed so many bytes.
func (c *Cache) removeOldest(s *shard, bytes int) (freed int) {
	for freed < bytes && s.order.Len() > 0 {
		freed += c.remove(s, s.order.Front())
	}
	return freed
}

// remove frees a value of s, which is locked.
func (c *Cache) remove(s *shard, at *list.Element) (freed int) {
	e := s.order.Remove(at).(entry)
	delete(s.entries, e.key)
	c.account.Free(e.value)
	return len(e.value)
}
