// Reads: copies, views and batches.

package cache

import (
	"context"
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
// of ctx, and counts neither a hit nor a miss. It finds an entry in memory even if ctx is done.
//
// If ctx can be done, each read of the disk costs a goroutine. That goroutine may outlast the call,
// and brings the entry to memory all the same. It may call OnEvict, and Close waits for it.
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
// the cache's memory: f must neither write to it nor keep it. It does not change until f returns or
// panics, even if f or other goroutines replace or delete the entry meanwhile. With
// FREEHOLD_DEBUG=guard or poison, -asan, and a parent of alloctest.New, f gets a copy, so that
// these find a write to the value and a use after f.
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

// countHit counts a hit of a live entry for eviction, and gives the entry the TTL of a read.
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
	next := max(c.clock.now(), handled+1) // for a negative TTL: at once
	if ttl >= 0 {
		next = c.clock.expires(ttl)
	}
	// This is a no-op if a Touch has set another expiry meanwhile.
	if r.it.expires.CompareAndSwap(expires, next) && c.clock.isSooner(next, expires) {
		s.expectSooner(r, next)
	}
}

// expiryOf calls Options.Expiry.
func (c *Cache) expiryOf(key []byte, e Entry, read bool) (ttl time.Duration) {
	c.copier.tell("cache.Options.Expiry", key, e, func(key []byte, e Entry) { ttl = c.options.Expiry(key, e, read) })
	return ttl
}

// batchKeys is the number of keys that are prefetched together, by GetMany and by evacuate.
const batchKeys = 16

// GetMany calls f with the index of each key that is found, and its entry, as View does. It costs
// less than a View for each key, since it waits for the memory of several keys at once.
func (c *Cache) GetMany(keys [][]byte, f func(i int, e Entry)) {
	c.base.MustBeOpen(&kind, "GetMany")
	for from := 0; from < len(keys); from += batchKeys {
		c.getSome(from, keys[from:min(from+batchKeys, len(keys))], f)
	}
}

// getSome is GetMany of at most batchKeys keys. from is the index of the first.
func (c *Cache) getSome(from int, keys [][]byte, f func(i int, e Entry)) {
	hashes := c.prefetch(keys)
	for i, key := range keys {
		c.view("cache.Cache.GetMany", hashes[i], key, func(e Entry) { f(from+i, e) })
	}
}

// Prefetch brings the index and the entries of keys into the processor's caches, for programs
// that know some calls ahead, such as pipelined writes. It waits for the memory of up to 16 keys at
// once. It changes nothing, and counts as no read.
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
