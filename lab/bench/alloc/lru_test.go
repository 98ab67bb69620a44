// LRU: a cache at its limit, which evicts when the allocator refuses.
//
// An operation looks a random key up. If it is there it becomes the youngest of
// its shard; if not it gets a value of a random size, and the shard's oldest
// values are evicted until there is room. Half of the keys are there.

//go:build peer_maxbytes || peer_limit

package alloc

import (
	"container/list"
	"errors"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/lab/bench/measure"
)

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
			panic(err)
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

func BenchmarkLRU(b *testing.B) {
	each(b, []sizes{{16, 1 << 10}, {16, 64 << 10}}, []int{1, 8}, func(b *testing.B, goroutines, least, most int) {
		var shards [64]shard
		for i := range shards {
			shards[i].values = map[uint64]*list.Element{}
		}
		keys, span := uint64(2*cacheBytes/((least+most)/2)), uint64(most-least+1)
		user := func(i int) measure.Loop {
			random := measure.Seed(i)
			return func(n int) (sum uint64) {
				rnd := random
				for range n {
					x := rnd.Next()
					key, size := measure.Below(x, keys), measure.From(x, uint64(least), span)
					shards[key%uint64(len(shards))].use(key, int(size))
					sum += key ^ size
				}
				random = rnd
				return sum
			}
		}
		user(goroutines)(int(keys)) // until the cache is full
		measure.Loops(b, goroutines, 1, user)

		live := 0
		for i := range shards {
			for e := shards[i].ages.Front(); e != nil; e = e.Next() {
				live += len(e.Value.(value).b)
				free(e.Value.(value).b)
			}
		}
		if live < cacheBytes*5/8 || live > cacheBytes {
			b.Errorf("%d bytes are live in a cache at its limit of %d", live, cacheBytes)
		}
	})
}
