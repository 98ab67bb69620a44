// Loans: shards lend each other parts of the bound, for entries that are large for a shard.
//
//	shares         |---- shard 0 ----|---- shard 1 ----|---- shard 2 ----|
//	limits         |- shard 0 -|---- shard 1, with a huge entry ----|- 2 -|    spare, no shard's
//
// An entry of up to a quarter of a share fits into its shard. A larger one is huge: before it is
// stored, the other shards lend room, first their unused bytes, and then bytes that they evict.
// When the entry is gone, its shard returns the loan to spare. The other shards take from spare,
// up to their shares, when they need room.
//
// bound.mu is held during a loan, and taken before the lock of a shard. So there is one loan at a
// time, and none during Resize.

package cache

import (
	"sync/atomic"

	"github.com/freehold-go/freehold"
)

const (
	hugeShare = 4 // a larger part of a share than this is huge
	keptShare = 8 // a shard keeps this part of its share
)

// isHuge reports whether an entry is huge whose key and value have the given bytes together.
func (c *Cache) isHuge(bytes int) bool {
	return bytes > int(c.bound.huge.Load()) && bytes <= c.maxEntry()
}

// roomFor returns how many bytes of the limit a huge entry needs.
func (c *Cache) roomFor(bytes int) int {
	return freehold.GoodSize(c.base.Parent, bytes+maxHeadBytes) + pageBytes
}

// lockFor locks the shard, until unlock, for a write of an entry whose key and value have the given
// bytes. For a huge entry it borrows room first. Memory that readers hold may keep it from that.
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
	s.pending, s.trim = 0, false
	s.mu.Unlock()
	if trim {
		s.c.trimmer.Trim()
	}
}

// needsRoom is the error of store if a huge entry needs a loan, and has the bytes of its key and
// value. The write then unlocks the shard, and begins again by lockFor with these bytes.
type needsRoom int

func (n needsRoom) Error() string { return "freehold: an entry needs room of other shards" }

// needs reports whether err is needsRoom, and sets *room to its bytes.
func needs(err error, room *int) bool {
	n, ok := err.(needsRoom)
	if ok {
		*room = int(n)
	}
	return ok
}

// lend locks s after the other shards have lent it room for a block of the given bytes.
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
	fixed := func() int { return s.index.Chunks()*b.c.segmentBytes + s.segs.pages.Len()*pageBytes }
	for round := 0; fixed()+bytes > s.limit && s.reclaim(round, Room); round++ {
		s.shrinkIndex(Room)
	}
}

// lend lowers the limit by up to the given bytes, and returns by how many. It lends unused bytes,
// and with evict also bytes that it evicts.
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

// rebalance returns loans for entries that are gone to spare, or takes lent bytes back from there.
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
		s.releaseSpare()
	}
	if more := s.limit - max(own, s.used); more > 0 {
		s.limit -= more
		spare.Add(int64(more))
	}
}

// takeUpTo subtracts n from a counter, or less if the counter has less, and returns how much.
func takeUpTo(counter *atomic.Int64, n int) int {
	for {
		has := counter.Load()
		take := min(has, int64(n))
		if take <= 0 || counter.CompareAndSwap(has, has-take) {
			return int(max(take, 0))
		}
	}
}
