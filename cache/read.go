// Reads: copies, views and batches.

package cache

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/blocks"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/prefetch"
)

// reads counts hits and misses, in stripes: processors seldom share a stripe's cache line.
type reads [stripes]struct {
	hits, misses, undecodable atomic.Uint64
	_                         [blocks.LineBytes - 24]byte
}

// Get appends the value of key to dst, and reports whether there is one. It allocates only if dst
// has no room.
func (c *Cache) Get(dst, key []byte) ([]byte, bool) {
	c.base.MustBeOpen(&kind, "Get")
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	return c.appendRead(s, c.orFetch(s, s.find(h, key), h, key, true), dst)
}

// appendRead counts a read, and appends the value of r to dst.
func (c *Cache) appendRead(s *shard, r pinned, dst []byte) ([]byte, bool) {
	r = c.countRead(s, r)
	if r.it == nil {
		return dst, false
	}
	dst = append(dst, r.it.value()...)
	r.markRead(c.accessTime())
	s.unpin(r)
	return dst, true
}

// GetContext is Get, but waits for Options.Disk only until ctx is done. It then returns the error
// of ctx, and counts no read. It finds an entry in memory even if ctx is done.
//
// If ctx can be done, each read of the disk costs a goroutine. That goroutine may outlast the call:
// Close waits for it, and it may call OnEvict.
func (c *Cache) GetContext(ctx context.Context, dst, key []byte) (_ []byte, found bool, err error) {
	c.base.MustBeOpen(&kind, "GetContext")
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	r := s.find(h, key)
	if r.it == nil && c.disk != nil {
		if r, err = s.fetchContext(ctx, h, key); err != nil {
			return dst, false, err
		}
	}
	dst, found = c.appendRead(s, r, dst)
	return dst, found, nil
}

// View calls f with the entry of key, if there is one, and reports whether there is. The value is
// the cache's memory. It does not change until f returns or panics, even if other goroutines, or f,
// replace or delete the entry meanwhile. f must neither write to it nor keep it. Debug modes find
// both mistakes, since f then gets a copy: FREEHOLD_DEBUG=guard and poison, -asan, and a parent of
// alloctest.New.
//
// f runs without a lock, may call any method of the cache but Close, and may take its time: see the
// package's documentation.
func (c *Cache) View(key []byte, f func(e Entry)) bool {
	c.base.MustBeOpen(&kind, "View")
	return c.view("cache.Cache.View", c.seed.Bytes(key), key, f)
}

// view is View. call is the name that debug modes print.
func (c *Cache) view(call string, h uint64, key []byte, f func(e Entry)) bool {
	if cp := c.copier; cp != nil {
		return c.viewItem(h, key, func(e Entry) { cp.show(call, e, f) })
	}
	return c.viewItem(h, key, f)
}

func (c *Cache) viewItem(h uint64, key []byte, f func(e Entry)) bool {
	s := c.shardOf(h)
	r := c.countRead(s, c.orFetch(s, s.find(h, key), h, key, true))
	if r.it == nil {
		return false
	}
	defer s.unpin(r)
	now := c.accessTime()
	e := s.entryOf(r, now)
	r.markRead(now)
	f(e)
	return true
}

// Peek is View without counting as a read: it changes neither Stats, nor the eviction order, nor a
// sliding TTL, nor Entry.Idle.
func (c *Cache) Peek(key []byte, f func(e Entry)) bool {
	c.base.MustBeOpen(&kind, "Peek")
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	r := c.orFetch(s, s.find(h, key), h, key, false)
	defer s.unpin(r)
	if !r.isLive(&c.clock) {
		return false
	}
	if e := s.entryOf(r, c.accessTime()); c.copier != nil {
		c.copier.show("cache.Cache.Peek", e, f)
	} else {
		f(e)
	}
	return true
}

// countRead counts a hit and returns r if its entry is live. Else it counts a miss and unpins r.
func (c *Cache) countRead(s *shard, r pinned) pinned {
	mine := &c.reads[pin.Stripe(stripeBits)]
	if !r.isLive(&c.clock) {
		s.unpin(r)
		mine.misses.Add(1)
		return pinned{}
	}
	mine.hits.Add(1)
	s.hit(r)
	if c.readsSetTTL {
		c.setTTLOrUnpin(s, r)
	}
	return r
}

// setTTLOrUnpin is setTTL that unpins r if Options.Expiry panics.
func (c *Cache) setTTLOrUnpin(s *shard, r pinned) {
	finish(func() { c.setTTL(s, r) }, func() { s.unpin(r) })
}

// countHit counts a hit of a live entry, and gives it the TTL of a read.
func (c *Cache) countHit(s *shard, r pinned) {
	s.hit(r)
	if c.readsSetTTL {
		c.setTTL(s, r)
	}
}

// setTTL gives an entry that was read the TTL of Options.Sliding or Expiry.
func (c *Cache) setTTL(s *shard, r pinned) {
	if r.isImage() {
		return
	}
	expires, ttl := r.it.expires.Load(), c.options.TTL
	if expires == 0 || expires == handled {
		return
	}
	if c.options.Expiry != nil {
		e := s.entryOf(r, c.accessTime())
		if ttl = c.expiryOf(r.it.key(), e, true); ttl == e.TTL {
			return
		}
	}
	next := max(c.clock.now(), handled+1) // at once
	if ttl >= 0 {
		next = c.clock.expires(ttl)
	}
	// No-op if a Touch has set another expiry meanwhile.
	if r.it.expires.CompareAndSwap(expires, next) && c.clock.isSooner(next, expires) {
		s.expectSooner(r, next)
	}
}

// expiryOf calls Options.Expiry.
func (c *Cache) expiryOf(key []byte, e Entry, read bool) (ttl time.Duration) {
	c.copier.tell("cache.Options.Expiry", key, e, func(key []byte, e Entry) { ttl = c.options.Expiry(key, e, read) })
	return ttl
}

// batchKeys is how many keys are looked for at a time, by GetMany and when a segment is emptied.
const batchKeys = 16

// GetMany calls f with the index of each key that is found, and its entry, as View does. It costs
// less than a View for each key, since it waits for the memory of several keys at once.
func (c *Cache) GetMany(keys [][]byte, f func(i int, e Entry)) {
	c.base.MustBeOpen(&kind, "GetMany")
	for from := 0; from < len(keys); from += batchKeys {
		c.getSome(from, keys[from:min(from+batchKeys, len(keys))], f)
	}
}

// getSome is GetMany of at most batchKeys keys; from is the index of the first.
func (c *Cache) getSome(from int, keys [][]byte, f func(i int, e Entry)) {
	hashes := c.prefetch(keys)
	for i, key := range keys {
		c.view("cache.Cache.GetMany", hashes[i], key, func(e Entry) { f(from+i, e) })
	}
}

// Prefetch brings the index and the entries of keys into the processor's caches, for programs
// that know some calls ahead, such as pipelined writes. It waits for the memory of several keys at
// once. It changes nothing, and is no read.
func (c *Cache) Prefetch(keys [][]byte) {
	c.base.MustBeOpen(&kind, "Prefetch")
	for from := 0; from < len(keys); from += batchKeys {
		c.prefetch(keys[from:min(from+batchKeys, len(keys))])
	}
}

// prefetch returns the hashes of at most batchKeys keys. It prefetches the buckets of all, and then
// the items of all.
func (c *Cache) prefetch(keys [][]byte) (hashes [batchKeys]uint64) {
	var addrs [batchKeys]uintptr
	me := c.readers.Enter()
	for i, key := range keys {
		hashes[i] = c.seed.Bytes(key)
		c.shardOf(hashes[i]).index.Prefetch(tagOf(hashes[i]))
	}
	for i, h := range hashes[:len(keys)] {
		addrs[i] = c.shardOf(h).firstAddr(tagOf(h))
	}
	for i, h := range hashes[:len(keys)] {
		prefetch.Lines(addrs[i], int(c.shardOf(h).lines.Load()))
	}
	c.readers.Leave(me)
	return hashes
}

// All returns an iterator over the keys and entries, in no order. Both are copies, which belong to
// the caller until the body of the loop ends. An entry that the cache moves during the loop may be
// seen twice or not at all. The body runs without a lock: it may call any method.
func (c *Cache) All() iter.Seq2[[]byte, Entry] {
	return c.inOrder("All", func(slot) int { return 0 }, 1)
}

// Hottest returns an iterator over the keys and entries, those first that the cache would keep
// longest. The order follows from the queue of an entry and its last few reads. Many are equal, in
// no order. All else is as for [Cache.All]. An entry that is read or written during the loop may be
// seen twice or not at all. The whole loop costs six times as much as All, beside the entries.
func (c *Cache) Hottest() iter.Seq2[[]byte, Entry] {
	return c.inOrder("Hottest", func(w slot) int { return warmths - 1 - warmth(w) }, warmths)
}

// Coldest returns an iterator over the keys and entries, those first that the cache would evict
// first. All else is as for [Cache.Hottest].
func (c *Cache) Coldest() iter.Seq2[[]byte, Entry] { return c.inOrder("Coldest", warmth, warmths) }

// inOrder returns an iterator over the keys and entries that passes over the cache n times. Pass i
// has the entries whose slots order returns i for.
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

// each calls f with the entries of a shard whose slots match, bucket by bucket, until f returns
// false.
func (s *shard) each(match func(w slot) bool, f func(r pinned) bool) bool {
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
