// LRU: a cache at its limit, which evicts when the allocator refuses.
//
// An operation looks a random key up. If it is there it becomes the youngest of
// its shard; if not it gets a value of a random size, and the shard's oldest
// values are evicted until there is room. Half of the keys are there.

//go:build peer_maxbytes || peer_limit

package main

import (
	"container/list"
	"errors"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/lab/bench/random"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

const (
	cacheBytes  = 64 << 20 // the allocator's limit
	cacheShards = 64
)

func init() { loads["lru"] = runLRU }

// A shard is the part of the keys that one lock guards.
type shard struct {
	mu     sync.Mutex
	values map[uint64]*list.Element // each a value
	ages   list.List                // youngest first
	_      [64]byte                 // the next one's lock is on another cache line
}

type value struct {
	key uint64
	b   block
}

// use looks key up and, if it is not there, puts size bytes there.
func (s *shard) use(key uint64, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.values[key]; e != nil {
		touch(e.Value.(value).b)
		s.ages.MoveToFront(e)
		return
	}
	for {
		b, err := alloc(size)
		if err == nil {
			touch(b)
			s.values[key] = s.ages.PushFront(value{key, b})
			return
		}
		if !errors.Is(err, freehold.ErrOutOfMemory) {
			sample.Fail(err)
		}
		oldest := s.ages.Back()
		if oldest == nil {
			return // the other shards have all the memory
		}
		v := s.ages.Remove(oldest).(value)
		delete(s.values, v.key)
		free(v.b)
	}
}

type lruCache [cacheShards]shard

func (c *lruCache) use(key uint64, size int) { c[key%cacheShards].use(key, size) }

// bytes returns the bytes in live values.
func (c *lruCache) bytes() (n uint64) {
	for i := range c {
		for e := c[i].ages.Front(); e != nil; e = e.Next() {
			n += uint64(len(e.Value.(value).b))
		}
	}
	return n
}

// An lruUser is one goroutine's part of the load.
type lruUser struct {
	cache           *lruCache
	keys, min, span uint64
	random          random.State
	sum             uint64
	_               [128]byte // the other thread's is on other cache lines
}

func runLRU(p *params) result {
	cache := &lruCache{}
	for i := range cache {
		cache[i].values = map[uint64]*list.Element{}
	}
	keys := uint64(2 * cacheBytes / ((p.Min + p.Max) / 2))
	user := func(thread int) *lruUser {
		return &lruUser{cache: cache, keys: keys, min: uint64(p.Min), span: uint64(p.Max - p.Min + 1), random: seed(thread)}
	}
	user(p.Threads).loop(int(keys)) // until the cache is full
	r := runThreads(p, func(thread int) looper { return user(thread) })
	r.Requested = cache.bytes()
	return r
}

func (l *lruUser) loop(n int) {
	for range n {
		x := l.random.Next()
		key, size := slotOf(x, l.keys), sizeOf(x, l.min, l.span)
		l.cache.use(key, int(size))
		l.sum += key ^ size
	}
}

func (l *lruUser) checksum() uint64 { return l.sum }
