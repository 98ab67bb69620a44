// Sweep: drops expired items and reclaims garbage in the background, at most once a second.
//
//	Set with a TTL --> wake at the second of its expiry --> sweep: expire, compact --> wake ...
//	Delete         --> wake, if many bytes are unused
//
// A sweep drops expired entries, empties segments that are mostly garbage, and gives spare segments
// back to the parent. Each sweep does a part of the segments, and the next one goes on. It locks
// one shard at a time, and releases the lock often. A Set that needs room drops expired entries
// itself.

package cache

import (
	"runtime"

	"github.com/freehold-go/freehold/internal/cuckoo"
)

const (
	emptyShare   = 32   // a sweep empties up to 1/emptyShare of a shard's segments
	spareParts   = 4    // and returns 1/spareParts of the spare segments, except for the reserve
	sparseShare  = 4    // an index with less than 1/sparseShare of its slots in use is shrunk
	sweepBuckets = 1024 // buckets removed from the index before the lock is released
)

// sweep sweeps all shards, one after the other. If work is left, it schedules the next sweep.
func (c *Cache) sweep() {
	now := c.clock.now()
	for i := range c.shards {
		c.shards[i].sweep(now)
	}
}

func (s *shard) sweep(now uint32) {
	s.lockFor(0)
	defer s.unlock()
	s.woken = false // discard may set it during a pause
	s.sweepExpired(now)
	if s.compact() {
		s.wake()
	}
	if s.due != 0 {
		s.c.sweeper.wake(s.due)
	}
}

// pause yields the shard's lock to other goroutines.
func (s *shard) pause() {
	s.mu.Unlock()
	runtime.Gosched()
	s.mu.Lock()
}

// sweepExpired drops the items that have expired at the second now.
func (s *shard) sweepExpired(now uint32) {
	if s.due == 0 || s.due > now {
		return
	}
	s.due = 0 // expect may set it during a pause
	for n := uint32(0); n < s.segs.count(); n++ {
		for s.expireIn(n, now) {
			s.pause()
		}
		if n < s.segs.count() {
			s.due = earlier(s.due, s.dueIn(n))
		}
	}
}

// compact empties a part of the segments while more than half of the items' bytes are garbage. Then
// it returns memory to the parent: a part of the spare segments beyond the reserve, and of the
// indexes of memory and disk if they are nearly empty. It reports whether work is left.
func (s *shard) compact() (more bool) {
	for range s.segs.count()/emptyShare + 1 {
		v := s.victims()
		if v.garbage <= max(s.filled/2, s.reserve()) || v.dirtiest == 0 {
			break
		}
		g := s.segs.at(v.dirtiest)
		if v.most*2 < int(g.used) {
			break // the garbage is in segments that are open or pinned
		}
		if s.evacuate(v.dirtiest, rule{leaves: true}, Room); g.live > 0 && g.state == sealed {
			break // no memory for copies
		}
		more = true
		s.pause()
	}
	s.retireLimbo()
	for range len(s.spares)/spareParts + 1 {
		if len(s.spares) == 0 || s.spare <= s.reserve() {
			break
		}
		more = true
		s.releaseSpare()
	}
	if s.index.Len() < int(s.index.Buckets())*cuckoo.Slots/sparseShare {
		for s.passes == 0 && s.shrinkIndex(sweepBuckets, Room) {
			s.pause()
		}
		more = more || s.passes > 0
	}
	s.tier.compact()
	return more
}
