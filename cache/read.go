// Reads: copies, views and batches.

package cache

import (
	"iter"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/blocks"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/prefetch"
)

// reads counts what reads found, in lines that processors seldom share.
type reads [stripes]struct {
	hits, misses, undecodable atomic.Uint64
	_                         [blocks.LineBytes - 24]byte
}

// Get appends the value of key to dst, and reports whether there is one. Where dst has room,
// nothing is allocated.
func (c *Cache) Get(dst, key []byte) ([]byte, bool) {
	c.base.MustBeOpen(&kind, "Get")
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	r := c.count(s, s.find(h, key))
	if r.it == nil {
		return dst, false
	}
	dst = append(dst, r.it.value()...)
	r.note(c.accessTime())
	r.unpin()
	return dst, true
}

// View calls f with the entry of key, if there is one, and reports whether there is. The value is
// the cache's memory: it stays as it is until f returns or panics, though other goroutines, or f,
// replace or delete the entry meanwhile. f must not write to it, nor keep it. FREEHOLD_DEBUG=guard
// and poison, -asan, and a parent of alloctest.New find both: f gets a copy there.
//
// f runs without a lock, may call any method of the cache but Close, and may take its time: see the
// package's documentation.
func (c *Cache) View(key []byte, f func(e Entry)) bool {
	c.base.MustBeOpen(&kind, "View")
	return c.view("cache.Cache.View", c.seed.Bytes(key), key, f)
}

// view is View in the name of call, which is used in debug modes alone.
func (c *Cache) view(call string, h uint64, key []byte, f func(e Entry)) bool {
	if l := c.lender; l != nil {
		return c.viewItem(h, key, func(e Entry) { l.show(call, e, f) })
	}
	return c.viewItem(h, key, f)
}

func (c *Cache) viewItem(h uint64, key []byte, f func(e Entry)) bool {
	s := c.shardOf(h)
	r := c.count(s, s.find(h, key))
	if r.it == nil {
		return false
	}
	defer r.unpin()
	now := c.accessTime()
	e := s.entryOf(r, now)
	r.note(now)
	f(e)
	return true
}

// Peek is View without counting as a read: it changes neither Stats, nor the eviction order, nor a
// sliding TTL, nor Entry.Idle.
func (c *Cache) Peek(key []byte, f func(e Entry)) bool {
	c.base.MustBeOpen(&kind, "Peek")
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	r := s.find(h, key)
	defer r.unpin()
	if !r.isLive(&c.clock) {
		return false
	}
	if e := s.entryOf(r, c.accessTime()); c.lender != nil {
		c.lender.show("cache.Cache.Peek", e, f)
	} else {
		f(e)
	}
	return true
}

// count counts a hit or a miss. It returns r if that is of a live entry, and else releases it.
func (c *Cache) count(s *shard, r pinned) pinned {
	mine := &c.reads[pin.Stripe(stripeBits)]
	if !r.isLive(&c.clock) {
		r.unpin()
		mine.misses.Add(1)
		return pinned{}
	}
	mine.hits.Add(1)
	c.wasRead(s, r)
	return r
}

// wasRead makes a live entry stay for longer, as it was read.
func (c *Cache) wasRead(s *shard, r pinned) {
	s.hit(r)
	if expires := r.it.expires.Load(); c.options.Sliding && expires != 0 {
		r.it.expires.CompareAndSwap(expires, c.clock.expires(c.options.TTL)) // unless Touch has come between
	}
}

// batchKeys is how many keys are looked for at a time, by GetMany and when a segment is emptied.
const batchKeys = 16

// GetMany calls f with the index of each key that is found, and its entry, as View does. It costs
// less than View of each, as it waits for the memory of several keys at once.
func (c *Cache) GetMany(keys [][]byte, f func(i int, e Entry)) {
	c.base.MustBeOpen(&kind, "GetMany")
	for from := 0; from < len(keys); from += batchKeys {
		c.getSome(from, keys[from:min(from+batchKeys, len(keys))], f)
	}
}

// getSome is GetMany of at most batchKeys keys; from is the index of the first. It prefetches the
// buckets of all, then the items of all, and then reads them.
func (c *Cache) getSome(from int, keys [][]byte, f func(i int, e Entry)) {
	var hashes [batchKeys]uint64
	var addrs [batchKeys]uintptr
	me := c.readers.Enter()
	for i, key := range keys {
		hashes[i] = c.seed.Bytes(key)
		c.shardOf(hashes[i]).index.Prefetch(tagOf(hashes[i]))
	}
	for i, h := range hashes[:len(keys)] {
		addrs[i] = c.shardOf(h).addrOf(tagOf(h))
	}
	for i, h := range hashes[:len(keys)] {
		prefetch.Lines(addrs[i], int(c.shardOf(h).lines.Load()))
	}
	c.readers.Leave(me)
	for i, key := range keys {
		c.view("cache.Cache.GetMany", hashes[i], key, func(e Entry) { f(from+i, e) })
	}
}

// All returns an iterator over the keys and entries, in no order. Both are copies, and the caller's
// until the body of the loop ends. An entry that the cache moves during the loop may be seen twice
// or not at all. The body runs without a lock: it may call any method.
func (c *Cache) All() iter.Seq2[[]byte, Entry] {
	return func(yield func([]byte, Entry) bool) {
		c.base.MustBeOpen(&kind, "All")
		var room []byte
		for i := range c.shards {
			s := &c.shards[i]
			if !s.each(func(r pinned) bool { return c.lender.yield(&room, r.it.key(), s.entryOf(r, c.accessTime()), yield) }) {
				return
			}
		}
	}
}

// each calls f with the entries of a shard, bucket by bucket, until f returns false.
func (s *shard) each(f func(r pinned) bool) bool {
	var held []pinned
	defer func() {
		for i := range held { // if f panics
			held[i].unpin()
		}
	}()
	for i := uint32(0); ; i++ {
		held = s.holdBucket(held[:0], i)
		if held == nil {
			return true
		}
		for len(held) > 0 {
			r := &held[len(held)-1]
			more := !r.isLive(&s.c.clock) || f(*r)
			r.unpin()
			held = held[:len(held)-1]
			if !more {
				return false
			}
		}
	}
}

// holdBucket appends readings of all that bucket i has, or returns nil beyond the last.
func (s *shard) holdBucket(held []pinned, i uint32) []pinned {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= s.index.Buckets() {
		return nil
	}
	b := s.index.Bucket(i)
	for j := range b.Slots {
		if r := s.hold(&b.Slots[j]); r.it != nil {
			held = append(held, r)
		}
	}
	if held == nil {
		held = []pinned{}
	}
	return held
}
