// Reads: copies, views and batches.

package cache

import "iter"

// Get appends the value of key to dst, and reports whether there is one. Where dst has room,
// nothing is allocated.
func (c *Cache) Get(dst, key []byte) ([]byte, bool) {
	c.base.MustBeOpen(&kind, "Get")
	ok := c.view(key, func(e Entry) { dst = append(dst, e.Value...) })
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
	return c.view(key, f)
}

// GetMany calls f with the index of each key that is found, and its entry, as View does. It costs
// less than View of each.
func (c *Cache) GetMany(keys [][]byte, f func(i int, e Entry)) {
	c.base.MustBeOpen(&kind, "GetMany")
	for i, key := range keys {
		c.view(key, func(e Entry) { f(i, e) })
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
