// Iteration: All, Hottest and Coldest, and each for Snapshot.
//
// A pass goes through the buckets of each shard. It pins the items of one bucket at a time, under
// the shard's lock. Then it calls a function with each item, without the lock.

package cache

import "iter"

// All returns an iterator over the keys and entries in memory, in no order. Both are copies, valid
// until the body of the loop ends; the body may write to them. An entry that the cache moves during
// the loop may be seen twice or not at all. The body runs without a lock: it may call any method.
func (c *Cache) All() iter.Seq2[[]byte, Entry] {
	return c.inOrder("All", func(slot) int { return 0 }, 1)
}

// Hottest is All in an order that begins with the entries that the cache would keep longest. The
// order has six levels, by the queue of an entry and its last few reads; entries of a level have no
// order. An entry that is read or written during the loop may be seen twice or not at all. A whole
// loop passes over the index six times. All else is as for [Cache.All].
func (c *Cache) Hottest() iter.Seq2[[]byte, Entry] {
	return c.inOrder("Hottest", func(w slot) int { return warmths - 1 - warmth(w) }, warmths)
}

// Coldest is [Cache.Hottest] in the reverse order: it begins with the entries that the cache would
// evict first.
func (c *Cache) Coldest() iter.Seq2[[]byte, Entry] { return c.inOrder("Coldest", warmth, warmths) }

// inOrder returns an iterator that passes over the cache n times. Pass i yields the entries for
// whose slots order returns i.
func (c *Cache) inOrder(call string, order func(w slot) int, n int) iter.Seq2[[]byte, Entry] {
	return func(yield func([]byte, Entry) bool) {
		c.base.MustBeOpen(&kind, call)
		var room []byte
		for i := range n * len(c.shards) {
			s := &c.shards[i%len(c.shards)]
			match := func(w slot) bool { return order(w) == i/len(c.shards) }
			if !s.each(match, func(r pinned) bool {
				return c.copier.yield(&room, r.it.key(), s.entryOf(r, c.accessTime()), yield)
			}) {
				return
			}
		}
	}
}

// each calls f with the live entries of a shard whose slots match, bucket by bucket, until f returns
// false. It reports whether f has not. Meanwhile sweeps leave the size of the index: to shrink it
// would move many slots to buckets that each has passed.
func (s *shard) each(match func(w slot) bool, f func(r pinned) bool) bool {
	s.addPass(1)
	defer s.addPass(-1)
	var held []pinned
	defer func() {
		for i := range held { // if f stops or panics
			s.unpin(held[i])
		}
	}()
	for i, rest := uint32(0), true; rest; {
		held, i, rest = s.holdNext(held[:0], i, match)
		for len(held) > 0 {
			r := &held[len(held)-1]
			more := !r.isLive(&s.c.clock) || f(*r)
			s.unpin(*r)
			held = held[:len(held)-1]
			if !more {
				return false
			}
		}
	}
	return true
}

func (s *shard) addPass(n int) {
	s.mu.Lock()
	s.passes += n
	s.mu.Unlock()
}

// holdNext searches from bucket i on for one with slots that match, under one lock. It pins their
// items, and appends them to held. It returns the bucket to go on from, and whether there is one.
func (s *shard) holdNext(held []pinned, i uint32, match func(w slot) bool) ([]pinned, uint32, bool) {
	const most = 64 // buckets, so that a writer waits for a microsecond or two
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.index.Buckets()
	if s.index.Len() == 0 {
		return held, n, false
	}
	for end := min(n, i+most); i < end && len(held) == 0; i++ {
		b := s.index.Bucket(i)
		for j := range b.Slots {
			w := slot(b.Slots[j].Load())
			if w == 0 || !match(w) {
				continue
			}
			if r := s.hold(&b.Slots[j]); r.it != nil {
				held = append(held, r)
			}
		}
	}
	return held, i, i < n
}
