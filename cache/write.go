// Writes: sets, conditions and updates.
//
// All of them are an update under the lock of the key's shard.

package cache

import "time"

// Set stores value for key, with the TTL of the options. If it fails, key has no entry: an old
// value would be a wrong one. The error matches [ErrTooLarge] or [freehold.ErrOutOfMemory].
func (c *Cache) Set(key, value []byte) error {
	c.base.MustBeOpen(&kind, "Set")
	_, err := c.put(key, Entry{Value: value, TTL: c.options.TTL})
	return err
}

// SetTTL is Set with a TTL of the entry's own. 0 means that it stays until there is no room.
func (c *Cache) SetTTL(key, value []byte, ttl time.Duration) error {
	c.base.MustBeOpen(&kind, "SetTTL")
	_, err := c.put(key, Entry{Value: value, TTL: ttl})
	return err
}

// Put is Set of an Entry, with its own TTL and flags. It returns the version that the entry has.
func (c *Cache) Put(key []byte, e Entry) (version uint64, err error) {
	c.base.MustBeOpen(&kind, "Put")
	return c.put(key, e)
}

// Add stores e if key has no entry, and reports whether it did. The errors are those of Set;
// nothing has changed then.
func (c *Cache) Add(key []byte, e Entry) (added bool, err error) {
	c.base.MustBeOpen(&kind, "Add")
	return c.putIf(key, e, func(_ *Entry, found bool) bool { return !found })
}

// Replace stores e if key has an entry, and reports whether it did. Errors are as for Add.
func (c *Cache) Replace(key []byte, e Entry) (replaced bool, err error) {
	c.base.MustBeOpen(&kind, "Replace")
	return c.putIf(key, e, func(_ *Entry, found bool) bool { return found })
}

// CompareAndSet stores e if key has an entry of that version, and reports whether it did. It may
// report false though nobody has stored anything, if the cache has moved the entry: read it and try
// again. Errors are as for Add.
func (c *Cache) CompareAndSet(key []byte, version uint64, e Entry) (set bool, err error) {
	c.base.MustBeOpen(&kind, "CompareAndSet")
	return c.putIf(key, e, func(old *Entry, found bool) bool { return found && old.Version == version })
}

// Update calls f with the entry of key, or with an empty one if there is none, and does what f
// returns. To store another entry, f sets Value, Flags and TTL; Value may be any bytes that
// stay until Update returns. The value that f gets is the cache's memory: f must not write to it.
//
// It returns the version of the entry that key has then, 0 if it has none. Errors are as for Add.
//
// f runs under the lock of a shard: it must be short, and calls of the cache from it deadlock.
func (c *Cache) Update(key []byte, f func(e *Entry, found bool) Change) (version uint64, err error) {
	c.base.MustBeOpen(&kind, "Update")
	return c.update(key, f)
}

// Touch gives the entry of key another TTL, as for SetTTL, and reports whether there is one. The
// version stays.
func (c *Cache) Touch(key []byte, ttl time.Duration) bool {
	c.base.MustBeOpen(&kind, "Touch")
	return c.touch(key, ttl)
}

// Delete deletes the entry of key, and reports whether there was one.
func (c *Cache) Delete(key []byte) bool {
	c.base.MustBeOpen(&kind, "Delete")
	found := false
	c.update(key, func(_ *Entry, ok bool) Change {
		found = ok
		return Remove
	})
	return found
}

// put stores e and deletes what key has if that fails.
func (c *Cache) put(key []byte, e Entry) (version uint64, err error) {
	version, err = c.update(key, func(old *Entry, _ bool) Change {
		*old = e
		return Store
	})
	if err != nil {
		c.update(key, func(*Entry, bool) Change { return Remove })
	}
	return version, err
}

// putIf stores e if want says so of what key has.
func (c *Cache) putIf(key []byte, e Entry, want func(old *Entry, found bool) bool) (done bool, err error) {
	_, err = c.update(key, func(old *Entry, found bool) Change {
		if !want(old, found) {
			return Keep
		}
		done = true
		*old = e
		return Store
	})
	return done && err == nil, err
}
