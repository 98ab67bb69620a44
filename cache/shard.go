// Shard: a lock and a part of the entries.

package cache

import (
	"maps"
	"sync"
	"time"
)

// A shard has the entries whose hashes choose it. mu guards it.
type shard struct {
	mu      sync.RWMutex
	c       *Cache
	entries map[string]stored
	last    uint64 // version
	bytes   int
}

// A stored entry is never written to.
type stored struct {
	Entry
	expires time.Time
}

func (s *shard) init(c *Cache) { s.c, s.entries = c, map[string]stored{} }

func (e stored) at(now time.Time) (Entry, bool) {
	if !e.expires.IsZero() {
		e.TTL = e.expires.Sub(now)
		return e.Entry, e.TTL > 0
	}
	return e.Entry, true
}

func (c *Cache) view(key []byte, f func(Entry)) bool {
	s := c.shardOf(c.seed.Bytes(key))
	s.mu.RLock()
	found, ok := s.entries[string(key)]
	s.mu.RUnlock()
	if !ok {
		return false
	}
	e, ok := found.at(time.Now())
	if ok {
		f(e)
	}
	return ok
}

func (c *Cache) update(key []byte, f func(e *Entry, found bool) Change) (uint64, error) {
	s := c.shardOf(c.seed.Bytes(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.entries[string(key)]
	e, found := old.at(time.Now())
	if !found {
		e = Entry{}
	}
	switch f(&e, found && had) {
	case Keep:
		return e.Version, nil
	case Remove:
		s.remove(string(key))
		return 0, nil
	}
	size := len(key) + len(e.Value)
	if size > c.options.MaxBytes/len(c.shards)/4 || len(key) > 1<<16-1 {
		return old.Version, ErrTooLarge
	}
	s.remove(string(key))
	for k := range s.entries {
		if s.bytes+size <= c.options.MaxBytes/len(c.shards) {
			break
		}
		if c.options.OnEvict != nil {
			c.options.OnEvict([]byte(k), s.entries[k].Value, Room)
		}
		s.remove(k)
	}
	if e.TTL < 0 {
		return 0, nil
	}
	s.last++
	e.Version = s.last
	e.Value = append([]byte(nil), e.Value...)
	put := stored{Entry: e}
	if e.TTL > 0 {
		put.expires = time.Now().Add(e.TTL)
	}
	s.entries[string(key)] = put
	s.bytes += size
	return e.Version, nil
}

func (s *shard) remove(key string) {
	if old, ok := s.entries[key]; ok {
		s.bytes -= len(key) + len(old.Value)
		delete(s.entries, key)
	}
}

func (c *Cache) touch(key []byte, ttl time.Duration) bool {
	s := c.shardOf(c.seed.Bytes(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.entries[string(key)]
	if !ok {
		return false
	}
	if old.expires = (time.Time{}); ttl != 0 {
		old.expires = time.Now().Add(ttl)
	}
	s.entries[string(key)] = old
	return true
}

func (s *shard) each(yield func([]byte, Entry) bool) bool {
	s.mu.RLock()
	all := maps.Clone(s.entries)
	s.mu.RUnlock()
	for k, v := range all {
		if e, ok := v.at(time.Now()); ok && !yield([]byte(k), e) {
			return false
		}
	}
	return true
}

func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.entries)
	s.bytes = 0
}

func (c *Cache) resize(maxBytes int) { c.options.MaxBytes = maxBytes }
