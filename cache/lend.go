// Loans: shards lend each other parts of the bound, for huge entries.
//
//	shares         |---- shard 0 ----|---- shard 1 ----|---- shard 2 ----|
//	limits         |- shard 0 -|---- shard 1, with a huge entry ----|- 2 -| unlent
//
// An entry of up to a quarter of a share fits into its shard. A larger one is huge. Before a huge
// entry is stored, the other shards lend room: first unused bytes, and then bytes that they evict. A
// shard that evicts a large entry lends all of its bytes, so that others evict less. When the huge
// entry is gone, its shard adds the loan to unlent. When other shards need room, they take from
// unlent, up to their shares.
//
// A loan holds bound.mu, which is locked before the lock of a shard. So one loan is made at a time,
// and none during Resize.

package cache

import (
	"math"

	"github.com/freehold-go/freehold"
)

const keptShare = 8 // a shard that lends keeps 1/keptShare of its share

// roomFor returns how many bytes of the limit a huge entry needs.
func (c *Cache) roomFor(bytes int) int {
	return freehold.GoodSize(c.base.Parent, bytes+maxHeadBytes) + pageBytes
}

// lockFor locks the shard to write an entry, until unlock. bytes is the size of key and value
// together. For a huge entry, lockFor first borrows room. It may borrow too little if readers hold
// memory.
func (s *shard) lockFor(bytes int) {
	if !s.c.isHuge(bytes) {
		s.mu.Lock()
		return
	}
	s.c.bound.borrow(s, s.c.roomFor(bytes))
}

// unlock ends lockFor. It trims the parent if large items have freed enough bytes.
func (s *shard) unlock() {
	trim := s.trim
	s.pending, s.trim = 0, false
	s.mu.Unlock()
	if trim {
		s.c.trimmer.Trim()
	}
}

// needsRoom is the error of store for a huge entry without a loan. Its value is the size of key and
// value together, with which the write begins again at lockFor, after it has unlocked the shard.
type needsRoom int

func (n needsRoom) Error() string { return "freehold: an entry needs room of other shards" }

// needsLoan reports whether err is needsRoom, and sets *size to its bytes.
func needsLoan(err error, size *int) bool {
	n, ok := err.(needsRoom)
	if ok {
		*size = int(n)
	}
	return ok
}

// borrow lets the other shards lend s room for a block of the given bytes, and locks s.
func (b *bound) borrow(s *shard, bytes int) {
	s.mu.Lock()
	s.pending = bytes
	if s.available() >= bytes+s.reserve() {
		return
	}
	s.unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	shards := b.c.shards
	lent := takeUpTo(&b.unlent, bytes)
	defer func() { b.unlent.Add(int64(lent)) }() // if OnEvict panics, s gets nothing
	// each asks one shard after the other to lend the missing bytes, of its unused ones. With evict,
	// the shard evicts up to part bytes first. each begins behind s, so that no shard lends most.
	each := func(part int, evict bool) {
		for i := range len(shards) - 1 {
			other := &shards[(int(s.number)+1+i)%len(shards)]
			lent += other.lend(min(part, bytes-lent), bytes-lent, evict)
		}
	}
	each(bytes, false)                               // unused bytes
	each((bytes-lent)/max(len(shards)-1, 1)+1, true) // equal parts, by evicting
	each(bytes, true)                                // the rest, if some shards could not lend theirs
	s.mu.Lock()
	s.pending = bytes
	s.limit += lent
	lent = 0
	// If index and pages leave too little of the limit, entries are evicted so that the index shrinks.
	fixed := func() int { return s.indexBytes() + s.segs.pages.Len()*pageBytes }
	finish(func() {
		for round := 0; fixed()+bytes > s.limit && s.reclaim(round, Room); round++ {
			s.shrinkIndex(math.MaxInt, Room)
		}
	}, s.unlock)
}

// lend lowers the shard's limit by up to most unused bytes, and returns the difference. With evict,
// it first evicts entries until at least the given bytes are unused.
func (s *shard) lend(bytes, most int, evict bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, least := s.limit, s.share/keptShare
	lower := func(limit int) {
		if limit < s.limit {
			finish(func() { s.shrink(limit, Room) }, func() { s.limit = was })
		}
	}
	if evict {
		lower(max(was-bytes, least))
	}
	lower(max(was-most, least, s.used-s.spare))
	s.limit = max(s.limit, min(s.used, was)) // readers may hold more
	return was - s.limit
}
