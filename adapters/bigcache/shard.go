// Shards: timestamps of the writes, oldest first, by which expired entries are found.
//
//	| removed | timestamp | timestamp | ... | timestamp |
//	          head
//
// Each entry has a timestamp with its second. Stale timestamps are of entries that were since
// overwritten, deleted or evicted. compact drops the stale ones when they are the majority.

package bigcache

import (
	"encoding/binary"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

const (
	maxScratch  = 64 << 10 // bytes of scratch that a shard keeps
	leastListed = 64       // timestamps
)

// An id is the hash of a key, which is the entry's key in package cache.
type id [8]byte

func idOf(hash uint64) (i id) {
	binary.LittleEndian.PutUint64(i[:], hash)
	return i
}

func (i id) hash() uint64 { return binary.LittleEndian.Uint64(i[:]) }

// A timestamp is the second of a write.
type timestamp struct {
	id id
	at uint32
}

// A shard has the timestamps of its hashes. mu guards all fields.
type shard struct {
	mu      sync.Mutex
	head    int
	list    []timestamp // in the memory of times
	scratch []byte      // where a write puts an entry's bytes together
	_       [64]byte    // keeps shards in cache lines of their own
}

// timestamps is the heap with the lists of all caches.
var timestamps = sync.OnceValue(func() *freehold.Heap {
	return freehold.NewHeap(&freehold.HeapOptions{Name: "bigcache"})
})

func (s *shard) free() {
	if cap(s.list) > 0 {
		freehold.FreeSlice(timestamps(), s.list)
	}
	s.list, s.head = nil, 0
}

// A memory is the part of a BigCache that the cleanup closes. It does not refer to the BigCache.
type memory struct {
	entries *cache.Cache
	shards  []shard
}

func newMemory(config *Config) *memory {
	return &memory{newEntries(config), make([]shard, config.Shards)}
}

func (m *memory) close() {
	m.entries.Close()
	for i := range m.shards {
		m.shards[i].free()
	}
}

func (m *memory) shardOf(i id) *shard { return &m.shards[i.hash()&uint64(len(m.shards)-1)] }

// note appends t to the list of a shard.
//
// Precondition: the shard is locked, here and below.
func (m *memory) note(s *shard, t timestamp) (err error) {
	if len(s.list) == cap(s.list) {
		m.compact(s)
	}
	s.list, err = freehold.Append(timestamps(), s.list, t)
	return err
}

// compact makes room in a full list, unless that would cost more than a longer list.
func (m *memory) compact(s *shard) {
	left := s.list[s.head:]
	switch {
	case s.head > len(left):
	case len(left) > 2*m.entries.Len()/len(m.shards)+leastListed:
		kept := left[:0]
		for _, t := range left {
			m.entries.Peek(t.id[:], func(e cache.Entry) {
				if secondOf(e.Flags) == uint64(t.at) {
					kept = append(kept, t)
				}
			})
		}
		left = kept
	default:
		return
	}
	s.list, s.head = s.list[:copy(s.list, left)], 0
}

// removeOldest removes the oldest entry of a shard if it has expired, and reports whether there may
// be others.
func (c *BigCache) removeOldest(s *shard, now uint64) (more bool) {
	if s.head == len(s.list) {
		return false
	}
	oldest := s.list[s.head]
	if !c.isExpired(uint64(oldest.at), now) {
		return false
	}
	s.head++
	c.entries.Update(oldest.id[:], func(e *cache.Entry, found bool) cache.Change {
		if !found || !c.isExpired(e.Flags, now) {
			return cache.Keep
		}
		c.config.removed(*e, Expired)
		return cache.Remove
	})
	return true
}

// cleanUp removes all entries that have expired at a second.
func (c *BigCache) cleanUp(now uint64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for c.removeOldest(s, now) {
		}
		s.mu.Unlock()
	}
}
