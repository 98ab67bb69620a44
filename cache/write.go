// Writes: sets, conditions and updates.
//
// Each call finds the key's shard, locks it with room for the entry, finds the key's item, and
// stores, changes or deletes it. If an entry turns out to be huge, the call begins again with room
// for it: see lend.go.

package cache

import (
	"fmt"
	"time"
)

// Set stores value for key, with the TTL of the options. If it fails, it deletes the key's entry,
// since an old value would be wrong. The error matches [ErrTooLarge] or [freehold.ErrOutOfMemory].
func (c *Cache) Set(key, value []byte) error {
	c.base.MustBeOpen(&kind, "Set")
	e := Entry{Value: value}
	_, err := c.put(key, &e, c.withTTL(&e))
	return err
}

// SetTTL is Set with the entry's own TTL, which is rounded up as [Entry].TTL says. With 0 the entry
// does not expire.
func (c *Cache) SetTTL(key, value []byte, ttl time.Duration) error {
	c.base.MustBeOpen(&kind, "SetTTL")
	_, err := c.put(key, &Entry{Value: value, TTL: ttl}, false)
	return err
}

// Put is Set of an Entry, with its own TTL and flags. For a TTL of 0 it takes the TTL of the
// options. It returns the entry's version.
func (c *Cache) Put(key []byte, e Entry) (version uint64, err error) {
	c.base.MustBeOpen(&kind, "Put")
	return c.put(key, &e, c.withTTL(&e))
}

// Add stores e as Put does if key has no entry, and reports whether it did. It returns the errors
// of Set. After an error the key's entry is as before, with one exception: it is gone if the cache
// dropped it to make room for a large e, and the parent then refused memory.
func (c *Cache) Add(key []byte, e Entry) (added bool, err error) {
	c.base.MustBeOpen(&kind, "Add")
	return c.putIf(key, &e, func(_ *shard, _ pinned, found bool) bool { return !found })
}

// Replace stores e if key has an entry, and reports whether it did. Errors are as for Add.
func (c *Cache) Replace(key []byte, e Entry) (replaced bool, err error) {
	c.base.MustBeOpen(&kind, "Replace")
	return c.putIf(key, &e, func(_ *shard, _ pinned, found bool) bool { return found })
}

// CompareAndSet stores e if the entry of key has the given version, and reports whether it did. It
// may report false for an unchanged entry that the cache has moved: read it and try again. It never
// reports true for another state of the key: see [Entry].Version. Errors are as for Add.
func (c *Cache) CompareAndSet(key []byte, version uint64, e Entry) (set bool, err error) {
	c.base.MustBeOpen(&kind, "CompareAndSet")
	return c.putIf(key, &e, func(s *shard, old pinned, found bool) bool {
		return found && s.version(old.w, old.it) == version
	})
}

// Update calls f with the entry of key, or with an empty one if there is none, and does the
// [Change] that f returns. To store another entry, f sets Value, Flags and TTL. A TTL of 0 means
// the TTL of the options. If f leaves the TTL as it is, the expiry stays. The value that f gets is
// the cache's memory: f must neither write to it nor keep it. A value that f sets must not change
// until Update returns.
//
// Update returns the new version of the key's entry, or 0 if the key then has none. Errors are as
// for Add.
//
// f runs under the lock of a shard: it must be short, and calls of the cache from it deadlock. If f
// stores or marks an entry larger than a quarter of a shard, Update calls f again, with the entry
// that key has then: see [Cache.MaxEntry].
func (c *Cache) Update(key []byte, f func(e *Entry, found bool) Change) (version uint64, err error) {
	c.base.MustBeOpen(&kind, "Update")
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	for size := 0; ; {
		version, err = s.update(h, key, f, size)
		if !needsLoan(err, &size) {
			return version, err
		}
	}
}

// update is Update in a shard. size is the size of the entry, for lockFor.
func (s *shard) update(h uint64, key []byte, f func(e *Entry, found bool) Change, size int) (version uint64, err error) {
	old, found := s.lockKey(h, key, size)
	defer s.unlock()
	defer func() { s.entry = Entry{} }()
	c := s.c
	if found {
		s.entry = s.entryOf(old, c.accessTime())
	}
	version, left := s.entry.Version, s.entry.TTL
	change := c.copier.change(&s.entry, found, f)
	var expires uint32
	asks := false
	if found && s.entry.TTL == left { // as before
		expires = old.it.expires.Load()
	} else {
		asks = change == Store && c.withTTL(&s.entry)
		expires = c.clock.expires(s.entry.TTL)
	}
	switch {
	case change == Store:
		w := c.newWrite(h, key, &s.entry, expires)
		w.asks = asks
		return s.store(&w, old)
	case change == Remove, change == Touch && s.entry.TTL < 0:
		s.loads.written(h, key, nil)
		s.remove(h, old)
		return 0, nil
	case change == Touch && found:
		if err = s.touch(h, key, old, expires); err != nil {
			return 0, err
		}
	case change == Mark && found:
		e := s.entryOf(old, c.accessTime()) // f may have changed s.entry
		e.Flags = s.entry.Flags
		w := c.newWrite(h, key, &e, old.it.expires.Load())
		w.keeps = true
		return s.store(&w, old)
	}
	return version, nil
}

// Touch gives the entry of key another TTL, as for SetTTL, and reports whether there is one. The
// version does not change. Touch counts as a read for eviction, but not in Stats.
func (c *Cache) Touch(key []byte, ttl time.Duration) bool {
	c.base.MustBeOpen(&kind, "Touch")
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	for size := 0; ; {
		found, err := s.touchKey(h, key, ttl, size)
		if !needsLoan(err, &size) {
			return found
		}
	}
}

// touchKey is Touch in a shard. size is the size of the entry, for lockFor.
func (s *shard) touchKey(h uint64, key []byte, ttl time.Duration, size int) (found bool, err error) {
	old, found := s.lockKey(h, key, size)
	defer s.unlock()
	switch {
	case ttl < 0:
		s.loads.written(h, key, nil)
		s.remove(h, old)
	case found:
		err = s.touch(h, key, old, s.c.clock.expires(ttl))
		if err != nil && !needsLoan(err, &size) { // no memory for the item; the old expiry would be wrong
			s.remove(h, old)
			s.tier.evicted++
			found = false
		}
	}
	return found, err
}

// touch gives an entry another expiry, and counts a hit. An entry on disk comes to memory, and stays
// due for a refresh as before.
func (s *shard) touch(h uint64, key []byte, old pinned, expires uint32) error {
	if old.isImage() {
		e := s.entryOf(old, s.c.accessTime())
		e.Read, e.Idle = true, 0
		e.TTL = s.c.clock.left(expires) // the old TTL may just have passed
		w := s.c.newWrite(h, key, &e, expires)
		if at := old.it.due(); at != nil {
			w.due = at.Load()
		}
		w.keeps = true
		_, err := s.store(&w, old)
		return err
	}
	if s.tier != nil {
		s.tier.forget(h)
	}
	n, offset := s.segs.split(old.w.place())
	old.it.expires.Store(expires)
	s.expect(s.segs.at(n), offset, expires)
	s.hit(old)
	old.markRead(s.c.accessTime())
	return nil
}

// Delete deletes the entry of key, and reports whether there was one.
func (c *Cache) Delete(key []byte) bool {
	c.base.MustBeOpen(&kind, "Delete")
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	old, found := s.lockKey(h, key, 0)
	defer s.unlock()
	s.loads.written(h, key, nil)
	s.remove(h, old)
	return found
}

// put stores e. If that fails, it deletes the key's item. asks says that Options.Expiry gives the
// TTL.
func (c *Cache) put(key []byte, e *Entry, asks bool) (version uint64, err error) {
	w := c.newWrite(c.seed.Bytes(key), key, e, c.clock.expires(e.TTL))
	w.asks = asks
	return c.storeOrDelete(&w)
}

// storeOrDelete stores an entry. If that fails, it deletes the key's item.
func (c *Cache) storeOrDelete(w *write) (version uint64, err error) {
	s := c.shardOf(w.h)
	for size := w.bytes(); ; {
		version, err = s.storeOrDelete(w, size)
		if !needsLoan(err, &size) {
			return version, err
		}
	}
}

// storeOrDelete is Cache.storeOrDelete in a shard. size is the size of the entry, for lockFor.
func (s *shard) storeOrDelete(w *write, size int) (version uint64, err error) {
	s.lockFor(size)
	defer s.unlock()
	if w.restored != nil && !s.loads.mayRestore(w.restored, w.h) || w.loading != nil && w.loading.written.Load() {
		return 0, nil
	}
	old, _ := s.current(w.h, w.key)
	version, err = s.store(w, old)
	if err != nil && !needsLoan(err, &size) {
		s.remove(w.h, s.scan(w.h, w.key, true)) // store may have deleted old
	}
	return version, err
}

// store stores an entry in place of old, the key's item or the zero pinned. If the entry has a
// negative TTL, store deletes old. The key counts as written even if the entry is too large: a load
// that is under way is not stored.
//
// Precondition: the caller locked the shard, and then found old by current.
func (s *shard) store(w *write, old pinned) (version uint64, err error) {
	if w.restored == nil {
		s.loads.written(w.h, w.key, w.loading)
	}
	if len(w.key) > maxKeyBytes {
		return 0, fmt.Errorf("%w: the key has %d bytes, of at most %d", ErrTooLarge, len(w.key), maxKeyBytes)
	}
	if n, most := w.bytes(), s.c.maxEntry(); n > most {
		return 0, fmt.Errorf("%w: key and value have %d bytes, of at most %d", ErrTooLarge, n, most)
	} else if s.c.isHuge(n) && s.pending < s.c.roomFor(n) {
		return 0, needsRoom(n)
	}
	if w.asks {
		s.askExpiry(w, old)
	}
	if w.e.TTL < 0 {
		s.remove(w.h, old)
		return 0, nil
	}
	version, err = s.put(w, old)
	if w.restored == nil { // so that a load that began since the first call is not stored either
		s.loads.written(w.h, w.key, w.loading)
	}
	return version, err
}

// askExpiry gives a new entry the TTL that Options.Expiry returns. Options.Expiry gets copies of key
// and value: the caller's own would escape to the Go heap in each Set.
func (s *shard) askExpiry(w *write, old pinned) {
	c := s.c
	room := append(append(s.room[:0], w.key...), w.e.Value...)
	if cap(room) <= mostRoom {
		s.room = room
	}
	key, value := room[:len(w.key):len(w.key)], room[len(w.key):]
	left := time.Duration(0)
	if old.isLive(&c.clock) {
		w.expires = old.it.expires.Load()
		left = c.clock.left(w.expires)
	}
	w.e.TTL = c.expiryOf(key, Entry{Value: value, Flags: w.e.Flags, TTL: left}, false)
	if w.e.TTL != left || left == 0 {
		w.expires = c.clock.expires(w.e.TTL)
	}
}

const mostRoom = 64 << 10 // the bytes that a shard keeps for askExpiry's copies

// withTTL gives an entry without a TTL the TTL of the options. It reports whether Options.Expiry is
// to give it one instead, under the lock of the shard.
func (c *Cache) withTTL(e *Entry) (asks bool) {
	if e.TTL != 0 {
		return false
	}
	e.TTL = c.options.TTL
	return c.options.Expiry != nil
}

// putIf stores e if cond returns true for the item of key.
func (c *Cache) putIf(key []byte, e *Entry, cond func(s *shard, old pinned, found bool) bool) (done bool, err error) {
	h := c.seed.Bytes(key)
	s := c.shardOf(h)
	for size := 0; ; {
		done, err = s.putIf(h, key, e, cond, size)
		if !needsLoan(err, &size) {
			return done, err
		}
	}
}

// putIf is Cache.putIf in a shard. size is the size of the entry, for lockFor.
func (s *shard) putIf(h uint64, key []byte, e *Entry, cond func(s *shard, old pinned, found bool) bool, size int) (done bool, err error) {
	old, found := s.lockKey(h, key, size)
	defer s.unlock()
	if !cond(s, old, found) {
		return false, nil
	}
	asks := s.c.withTTL(e)
	w := s.c.newWrite(h, key, e, s.c.clock.expires(e.TTL))
	w.asks = asks
	_, err = s.store(&w, old)
	return err == nil, err
}

// current returns the item of key, unpinned, and whether it is a live entry. It drops an expired
// item. First it grows the index for one more slot, if there is memory.
func (s *shard) current(h uint64, key []byte) (r pinned, found bool) {
	s.growIndex(1)
	s.growAhead()
	r = s.scan(h, key, true)
	if r.it != nil && r.it.hasExpired(&s.c.clock) {
		n, _ := s.segs.split(r.w.place())
		s.drop(r.at, Expired)
		s.retireEmpty(n)
		return pinned{}, false
	}
	return r, r.isLive(&s.c.clock)
}
