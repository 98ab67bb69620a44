// Reads: copies, views and batches.

package cache

import (
	"iter"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/pin"
)

// reads counts what reads found, in lines that processors seldom share.
type reads [stripes]struct {
	hits, misses atomic.Uint64
	_            [lineBytes - 16]byte
}

// Get appends the value of key to dst, and reports whether there is one. Where dst has room,
// nothing is allocated.
func (c *Cache) Get(dst, key []byte) ([]byte, bool) {
	c.base.MustBeOpen(&kind, "Get")
	r, ok := c.read(key)
	if ok {
		dst = append(dst, r.it.value()...)
		r.release()
	}
	return dst, ok
}

// View calls f with the entry of key, if there is one, and reports whether there is. The value is
// the cache's memory: it stays as it is until f returns or panics, though other goroutines, or f,
// replace or delete the entry meanwhile. f must not write to it, nor keep it.
//
// f runs without a lock, may call any method of the cache but Close, and may take its time: see the
// package's documentation.
func (c *Cache) View(key []byte, f func(e Entry)) bool {
	c.base.MustBeOpen(&kind, "View")
	r, ok := c.read(key)
	if ok {
		defer r.release()
		f(r.entryOf())
	}
	return ok
}

// read returns a reading of a live entry, which counts as a hit. The caller releases it.
func (c *Cache) read(key []byte) (reading, bool) {
	h := c.seed.Bytes(key)
	r := c.shardOf(h).find(h, key)
	mine := &c.reads[pin.Stripe(stripeBits)]
	if !r.isLive() {
		r.release()
		mine.misses.Add(1)
		return reading{}, false
	}
	mine.hits.Add(1)
	r.hit()
	if c.options.Sliding && r.it.expires.Load() != 0 {
		r.it.expires.Store(c.clock.expires(c.options.TTL))
	}
	return r, true
}

// GetMany calls f with the index of each key that is found, and its entry, as View does. It costs
// less than View of each.
func (c *Cache) GetMany(keys [][]byte, f func(i int, e Entry)) {
	c.base.MustBeOpen(&kind, "GetMany")
	for i, key := range keys {
		c.View(key, func(e Entry) { f(i, e) })
	}
}

// All returns an iterator over the keys and entries, in no order, which are copies and the
// caller's until the next one. An entry that the cache moves during the loop may be seen
// twice or not at all. The body runs without a lock: it may call any method.
func (c *Cache) All() iter.Seq2[[]byte, Entry] {
	return func(yield func([]byte, Entry) bool) {
		c.base.MustBeOpen(&kind, "All")
		for i := range c.shards {
			if !c.shards[i].each(yield) {
				return
			}
		}
	}
}

// each calls yield with the entries of a shard, bucket by bucket, until it returns false.
func (s *shard) each(yield func([]byte, Entry) bool) bool {
	var held []reading
	defer func() {
		for i := range held { // if yield panics
			held[i].release()
		}
	}()
	for i := uint32(0); ; i++ {
		held = s.holdBucket(held[:0], i)
		if held == nil {
			return true
		}
		for len(held) > 0 {
			r := &held[len(held)-1]
			more := !r.isLive() || yield(r.it.key(), r.entryOf())
			r.release()
			held = held[:len(held)-1]
			if !more {
				return false
			}
		}
	}
}

// holdBucket appends readings of all that bucket i has, or returns nil beyond the last.
func (s *shard) holdBucket(held []reading, i uint32) []reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= s.index.buckets.Load() {
		return nil
	}
	b := s.index.bucket(i)
	for j := range b.slots {
		if w := slot(b.slots[j].Load()); w != 0 {
			held = append(held, s.hold(&b.slots[j], w))
		}
	}
	if held == nil {
		held = []reading{}
	}
	return held
}
