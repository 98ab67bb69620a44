// Shards: when entries were written, oldest first.
//
//	| removed | written | written | ... | written |
//	          head
//
// Each entry has a written with its second. Others are of entries that were since overwritten,
// deleted or evicted. note drops those when there are more than of the first kind.

package bigcache

import (
	"encoding/binary"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

const (
	mostRoom    = 64 << 10 // that a shard keeps
	leastListed = 64
)

// An id is the hash of a key, which is the entry's key in package cache.
type id [8]byte

func idOf(hash uint64) (i id) {
	binary.LittleEndian.PutUint64(i[:], hash)
	return i
}

func (i id) hash() uint64 { return binary.LittleEndian.Uint64(i[:]) }

// A written is a second at which an entry was written.
type written struct {
	id id
	at uint32
}

// A shard orders the writes of its hashes. mu guards all.
type shard struct {
	mu   sync.Mutex
	head int
	list []written // in the memory of times
	room []byte    // where a write puts an entry's bytes together
	_    [64]byte  // another processor's shard is not in this cache line
}

// times has the lists of all caches.
var times = sync.OnceValue(func() *freehold.Heap {
	return freehold.NewHeap(&freehold.HeapOptions{Name: "bigcache"})
})

func (s *shard) free() {
	if cap(s.list) > 0 {
		freehold.FreeSlice(times(), s.list)
	}
	s.list, s.head = nil, 0
}

// A memory has all that a cache frees when nothing refers to it.
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

// note adds w to the list of a shard.
//
// Precondition: the shard is locked, here and below.
func (m *memory) note(s *shard, w written) (err error) {
	if len(s.list) == cap(s.list) {
		m.compact(s)
	}
	s.list, err = freehold.Append(times(), s.list, w)
	return err
}

// compact makes room in a full list, unless that would cost more than a longer list.
func (m *memory) compact(s *shard) {
	left := s.list[s.head:]
	switch {
	case s.head > len(left):
	case len(left) > 2*m.entries.Len()/len(m.shards)+leastListed:
		kept := left[:0]
		for _, w := range left {
			m.entries.Peek(w.id[:], func(e cache.Entry) {
				if secondOf(e.Flags) == uint64(w.at) {
					kept = append(kept, w)
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
