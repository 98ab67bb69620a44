// Loans: shards lend each other parts of the bound, for entries that are large for a shard.
//
//	shares         |---- shard 0 ----|---- shard 1 ----|---- shard 2 ----|
//	limits         |- shard 0 -|---- shard 1, with a huge entry ----|- 2 -|    spare, no shard's
//
// An entry up to a quarter of a share needs nothing from others. A huge one is larger: before it is stored,
// the others lend as much as it takes, of what they do not use,
// and then of what they evict. Once it is gone its shard puts what it was
// lent into spare, from which the others take up to their shares when they need room.
//
// bound.mu is held while shards lend, and taken before the lock of a shard. So there is one loan at a time,
// and none during Resize.

package cache

import (
	"sync/atomic"

	"github.com/freehold-go/freehold"
)

const (
	hugeShare = 4 // a larger part of a share than this is huge
	keptShare = 8 // a shard keeps this part of its share
)

// isHuge reports whether an entry with so many bytes of key and value is.
func (c *Cache) isHuge(bytes int) bool {
	return bytes > int(c.bound.huge.Load()) && bytes <= c.maxEntry()
}

// roomFor returns how much of the limit a huge entry needs.
func (c *Cache) roomFor(bytes int) int {
	return freehold.GoodSize(c.base.Parent, bytes+maxHeadBytes) + pageBytes
}

// lockFor locks the shard for a write of an entry with so many bytes, until unlock. If that is huge, the shard has
// room for it, as far as readers hold none.
func (s *shard) lockFor(bytes int) {
	if !s.c.isHuge(bytes) {
		s.mu.Lock()
		return
	}
	s.c.bound.lend(s, s.c.roomFor(bytes))
}

// unlock ends lockFor, and has the parent trim what large entries have given back.
func (s *shard) unlock() {
	trim := s.trim
	s.pending, s.asked, s.trim = 0, 0, false
	s.mu.Unlock()
	if trim {
		s.c.trimmer.Trim()
	}
}

// asks reports whether the shard must be locked for an entry with so many bytes before that is stored.
func (s *shard) asks(bytes int) bool {
	if s.c.isHuge(bytes) && s.pending < s.c.roomFor(bytes) {
		s.asked = bytes
	}
	return s.asked > 0
}

// lend locks s with room for a block of so many bytes, which is what the others lend.
func (b *bound) lend(s *shard, bytes int) {
	s.mu.Lock()
	s.pending = bytes
	if s.available() >= bytes+reserveSegments*b.c.segmentBytes {
		return
	}
	s.unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	shards := b.c.shards
	lent := takeUpTo(&b.spare, bytes)
	each := func(part int, evict bool) {
		for i := range shards {
			if &shards[i] != s {
				lent += shards[i].lend(min(part, bytes-lent), evict)
			}
		}
	}
	each(bytes, false)
	each((bytes-lent)/max(len(shards)-1, 1)+1, true)
	each(bytes, true)
	s.mu.Lock()
	s.pending = bytes
	s.limit += lent
	fixed := func() int { return s.index.chunks.len()*b.c.segmentBytes + s.segs.pages.len()*pageBytes }
	for round := 0; fixed()+bytes > s.limit && s.reclaim(round, Room); round++ {
		s.shrinkIndex(Room)
	}
}

// lend makes the limit less by up to so many bytes, and returns by how many. It lends what is unused, or also
// what it evicts.
func (s *shard) lend(bytes int, evict bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.limit
	limit := max(was-bytes, s.share/keptShare)
	if !evict {
		limit = max(limit, s.used-len(s.spares)*s.c.segmentBytes)
	}
	if limit < was {
		s.shrink(limit, Room)
		s.limit = max(limit, min(s.used, was)) // readers may hold more
	}
	return was - s.limit
}

// rebalance puts into spare what the shard was lent for entries that are gone, or takes back what it has lent.
func (s *shard) rebalance() {
	spare := &s.c.bound.spare
	if s.limit < s.share {
		s.limit += takeUpTo(spare, s.share-s.limit)
	}
	if s.limit <= s.share {
		return
	}
	own := s.share + s.pending
	s.segs.each(func(_ uint32, g *segment) {
		if int(g.bytes) > s.share/hugeShare {
			own += int(g.bytes)
		}
	})
	for s.used > own && len(s.spares) > 0 {
		s.giveBackSpare()
	}
	if more := s.limit - max(own, s.used); more > 0 {
		s.limit -= more
		spare.Add(int64(more))
	}
}

// takeUpTo takes n of a counter, or what it has.
func takeUpTo(counter *atomic.Int64, n int) int {
	for {
		has := counter.Load()
		take := min(has, int64(n))
		if take <= 0 || counter.CompareAndSwap(has, has-take) {
			return int(max(take, 0))
		}
	}
}
