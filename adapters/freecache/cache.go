// Cache: the interface of freecache on a cache of freehold.

// Package freecache replaces github.com/coocood/freecache by freehold's cache:
//
//	go mod edit -replace github.com/freehold-go/freehold=../freehold # a clone
//	go mod edit -replace github.com/coocood/freecache=../freehold/adapters/freecache
//	go mod tidy
//
// After the first release, the second line suffices, with the path
// github.com/freehold-go/freehold/adapters/freecache@v0.1.0.
//
// Libraries import this package instead, since only the main module's replace lines count.
//
// The program needs no other change. What differs:
//
//   - The size bounds the index too; freecache takes 16 bytes an entry beyond it. A new cache takes
//     no memory, and the collector frees all of it when nothing refers to the Cache.
//   - [Cache.OverwriteCount] counts each Set of a key that has an entry. freecache counts one only if
//     the new value fits in the memory of the old one.
//   - [Cache.EvacuateCount] counts evicted entries. freecache also counts moved ones.
//   - [Cache.AverageAccessTime] visits all entries.
//   - [Cache.GetFn] and [Cache.PeekFn] hold no lock. Their function may call the Cache, and must not
//     write to the value.
//   - Peeks find an expired entry for up to a second. With a custom Timer they find it until it is
//     evicted or a Get asks for it, as in freecache.
//   - RingBuf is missing. It is the memory of freecache's entries, and independent of Cache.
//
// Entries are in [freehold.Pages]. Package track shows the caches under the name "freecache".
package freecache

import (
	"cmp"
	"encoding/binary"
	"errors"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

const (
	minBufSize = 512 << 10
	maxKeySize = 65535
	largeShare = 1024 // an entry with its head has at most 1/largeShare of the cache
)

// Sizes of freecache, in bytes. An entry may be ENTRY_HDR_SIZE less than 1/1024 of the cache.
const (
	HASH_ENTRY_SIZE = 16
	ENTRY_HDR_SIZE  = 24
)

// Errors of the calls of a Cache, besides [freehold.ErrOutOfMemory].
var (
	ErrLargeKey   = errors.New("The key is larger than 65535")
	ErrLargeEntry = errors.New("The entry size is larger than 1/1024 of cache size")
	ErrNotFound   = errors.New("Entry not found")
)

// A Cache keeps entries of bytes. Any number of goroutines may call its methods at the same time.
// [NewCache] and [NewCacheCustomTimer] make one.
type Cache struct {
	entries *cache.Cache
	timer   Timer
	isReal  bool // timer is the system's time
	most    int  // bytes of a key and its value
	*counts
}

// An Updater returns the new value of a key for [Cache.Update], whether to store it, and its expiry
// as for [Cache.Set]. It gets a copy of the old value, or nil and false if there is none.
type Updater func(value []byte, found bool) (newValue []byte, replace bool, expireSeconds int)

// NewCache returns an empty cache of a size in bytes, which is at least 512 KiB.
func NewCache(size int) *Cache { return NewCacheCustomTimer(size, nil) }

// NewCacheCustomTimer is NewCache with a timer that decides when entries expire. nil means the
// system's time.
func NewCacheCustomTimer(size int, timer Timer) *Cache {
	size = max(size, minBufSize)
	if timer == nil {
		timer = defaultTimer{}
	}
	c := &Cache{
		entries: cache.New(freehold.Pages(), &cache.Options{MaxBytes: size, Name: "freecache", Access: true, Collect: true}),
		timer:   timer,
		most:    size/largeShare - ENTRY_HDR_SIZE,
		counts:  new(counts),
	}
	switch timer.(type) {
	case defaultTimer, *cachedTimer:
		c.isReal = true
	}
	c.reset.Store(new(figures))
	return c
}

// fits returns the error of an entry that is too large.
func (c *Cache) fits(key, value []byte) error {
	switch {
	case len(key) > maxKeySize:
		return ErrLargeKey
	case len(key)+len(value) > c.most:
		return ErrLargeEntry
	}
	return nil
}

// entry returns an entry that expires after expireSeconds, or never if that is not positive. Its
// flags are the timer's second at which it expires. If the timer is the system's time, the entry also
// has a TTL, so that the cache drops it first when it needs room.
func (c *Cache) entry(value []byte, expireSeconds int) cache.Entry {
	e, now := cache.Entry{Value: value}, c.timer.Now()
	if expireSeconds > 0 {
		e.Flags = uint64(now + uint32(expireSeconds))
		if c.isReal {
			e.TTL = time.Duration(uint32(expireSeconds)) * time.Second
		}
	}
	return e
}

func (c *Cache) hasExpired(e cache.Entry) bool {
	return e.Flags != 0 && uint32(e.Flags) <= c.timer.Now()
}

// read calls f with the value of key, and the second at which it expires, or 0. An expired entry is
// deleted.
func (c *Cache) read(key []byte, f func(value []byte, expireAt uint32)) error {
	var late uint64 // the flags of an expired entry
	found := c.entries.View(key, func(e cache.Entry) {
		if c.hasExpired(e) {
			late = e.Flags
			return
		}
		f(e.Value, uint32(e.Flags))
	})
	if late != 0 {
		c.expire(key, late)
	}
	if !found || late != 0 {
		return ErrNotFound
	}
	return nil
}

// expire counts the read of an expired entry as a miss, and deletes the entry.
func (c *Cache) expire(key []byte, flags uint64) {
	c.hits.Add(-1)
	c.misses.Add(1)
	c.entries.Update(key, func(e *cache.Entry, found bool) cache.Change {
		if !found || e.Flags != flags {
			return cache.Keep
		}
		c.expired.Add(1)
		return cache.Remove
	})
}

// copyTo copies a value to buf, or to new memory if buf has no capacity for it.
func copyTo(buf, value []byte) []byte {
	if cap(buf) < len(value) {
		buf = make([]byte, len(value))
	}
	buf = buf[:len(value)]
	copy(buf, value)
	return buf
}

// Set stores a copy of value for key. If expireSeconds is positive, the entry expires after that
// time; else it stays until it is evicted. The error is ErrLargeKey or ErrLargeEntry, which keep the
// key's old entry, or [freehold.ErrOutOfMemory].
func (c *Cache) Set(key, value []byte, expireSeconds int) error {
	if err := c.fits(key, value); err != nil {
		return err
	}
	_, err := c.entries.Put(key, c.entry(value, expireSeconds))
	return err
}

// Touch sets the expiry of key's entry as Set does. The error is ErrNotFound if there is none, or
// ErrLargeKey.
func (c *Cache) Touch(key []byte, expireSeconds int) error {
	if len(key) > maxKeySize {
		return ErrLargeKey
	}
	touched := false
	_, err := c.entries.Update(key, func(e *cache.Entry, found bool) cache.Change {
		switch {
		case !found:
			return cache.Keep
		case c.hasExpired(*e):
			c.expired.Add(1)
			c.misses.Add(1)
			return cache.Remove
		}
		*e, touched = c.entry(e.Value, expireSeconds), true
		return cache.Store
	})
	switch {
	case err != nil:
		return err
	case !touched:
		return ErrNotFound
	}
	c.touched.Add(1)
	return nil
}

// Get returns a copy of key's value, or ErrNotFound.
func (c *Cache) Get(key []byte) (value []byte, err error) { return c.GetWithBuf(key, nil) }

// GetWithBuf is Get. The copy is in buf if its capacity is enough; the length of buf does not
// matter.
func (c *Cache) GetWithBuf(key, buf []byte) (value []byte, err error) {
	value, _, err = c.GetWithExpirationAndBuf(key, buf)
	return value, err
}

// GetWithExpiration is Get. It also returns the second at which the entry expires, or 0.
func (c *Cache) GetWithExpiration(key []byte) (value []byte, expireAt uint32, err error) {
	return c.GetWithExpirationAndBuf(key, nil)
}

// GetWithExpirationAndBuf is GetWithExpiration and GetWithBuf.
func (c *Cache) GetWithExpirationAndBuf(key, buf []byte) (value []byte, expireAt uint32, err error) {
	err = c.read(key, func(v []byte, at uint32) { value, expireAt = copyTo(buf, v), at })
	return value, expireAt, err
}

// MultiGet is Get of each key. A value that is not found is nil, and its error ErrNotFound.
func (c *Cache) MultiGet(keys [][]byte) (values [][]byte, errs []error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, errs = make([][]byte, len(keys)), make([]error, len(keys))
	for i := range errs {
		errs[i] = ErrNotFound
	}
	c.entries.GetMany(keys, func(i int, e cache.Entry) {
		if c.hasExpired(e) {
			c.expire(keys[i], e.Flags)
			return
		}
		values[i], errs[i] = copyTo(nil, e.Value), nil
	})
	return values, errs
}

// GetFn calls fn with the value of key and returns its error, or ErrNotFound. The value is the
// cache's memory: fn must neither write to it nor keep it.
func (c *Cache) GetFn(key []byte, fn func([]byte) error) (err error) {
	missing := c.read(key, func(v []byte, _ uint32) { err = fn(v[:len(v):len(v)]) })
	return cmp.Or(missing, err)
}

// Peek is Get without an effect on figures and eviction. It may return an expired value.
func (c *Cache) Peek(key []byte) (value []byte, err error) {
	value, _, err = c.PeekWithExpiration(key)
	return value, err
}

// PeekWithExpiration is Peek. It also returns the second at which the entry expires, or 0.
func (c *Cache) PeekWithExpiration(key []byte) (value []byte, expireAt uint32, err error) {
	err = c.peek(key, func(v []byte, at uint32) { value, expireAt = copyTo(nil, v), at })
	return value, expireAt, err
}

// PeekFn is GetFn as a Peek.
func (c *Cache) PeekFn(key []byte, fn func([]byte) error) (err error) {
	missing := c.peek(key, func(v []byte, _ uint32) { err = fn(v[:len(v):len(v)]) })
	return cmp.Or(missing, err)
}

func (c *Cache) peek(key []byte, f func(value []byte, expireAt uint32)) error {
	if !c.entries.Peek(key, func(e cache.Entry) { f(e.Value, uint32(e.Flags)) }) {
		return ErrNotFound
	}
	return nil
}

// TTL returns the seconds until key's entry expires, or 0 if it does not expire.
func (c *Cache) TTL(key []byte) (timeLeft uint32, err error) {
	missing := c.peek(key, func(_ []byte, expireAt uint32) {
		if expireAt == 0 {
			return
		}
		if now := c.timer.Now(); now < expireAt {
			timeLeft = expireAt - now
		} else {
			err = ErrNotFound
		}
	})
	return timeLeft, cmp.Or(missing, err)
}

// GetOrSet returns a copy of key's value. If there is none, it is Set and returns nil.
func (c *Cache) GetOrSet(key, value []byte, expireSeconds int) (retValue []byte, err error) {
	_, _, err = c.Update(key, func(old []byte, found bool) ([]byte, bool, int) {
		retValue = old
		return value, !found, expireSeconds
	})
	return retValue, err
}

// SetAndGet is Set, and returns a copy of the value that key had before, and whether it had one.
func (c *Cache) SetAndGet(key, value []byte, expireSeconds int) (retValue []byte, found bool, err error) {
	found, _, err = c.Update(key, func(old []byte, _ bool) ([]byte, bool, int) {
		retValue = old
		return value, true, expireSeconds
	})
	return retValue, found, err
}

// Update stores the value that updater returns for key. It reports whether there was a value, and
// whether updater asked to replace it. It fails as Set does. updater runs under a lock: it
// must be short, and calls of the Cache from it deadlock.
func (c *Cache) Update(key []byte, updater Updater) (found, replaced bool, err error) {
	var asked bool
	var version uint64
	var value []byte
	var expireSeconds int
	var tooLarge error
	_, err = c.entries.Update(key, func(e *cache.Entry, has bool) cache.Change {
		was := found
		expired := has && c.hasExpired(*e)
		found = has && !expired
		if !asked {
			c.countRead(found, expired)
		}
		// The cache calls this function again for a huge entry. A new answer is only needed if the
		// key's entry has changed meanwhile.
		if !asked || found != was || e.Version != version {
			var old []byte
			if found {
				old = copyTo(nil, e.Value)
			}
			asked, version = true, e.Version
			value, replaced, expireSeconds = updater(old, found)
		}
		if tooLarge = nil; replaced {
			tooLarge = c.fits(key, value)
		}
		switch {
		case replaced && tooLarge == nil:
			*e = c.entry(value, expireSeconds)
			return cache.Store
		case expired:
			return cache.Remove
		}
		return cache.Keep
	})
	if tooLarge != nil {
		err = tooLarge
	}
	return found, replaced, err
}

// Del deletes key's entry, and reports whether there was one.
func (c *Cache) Del(key []byte) (affected bool) {
	affected = c.entries.Delete(key)
	if affected {
		c.deleted.Add(1)
	}
	return affected
}

func intKey(key int64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(key))
}

// SetInt is Set. The key is the 8 bytes of an integer, in little-endian order.
func (c *Cache) SetInt(key int64, value []byte, expireSeconds int) error {
	return c.Set(intKey(key), value, expireSeconds)
}

// GetInt is Get with a key as for SetInt.
func (c *Cache) GetInt(key int64) (value []byte, err error) { return c.Get(intKey(key)) }

// GetIntWithExpiration is GetWithExpiration with a key as for SetInt.
func (c *Cache) GetIntWithExpiration(key int64) (value []byte, expireAt uint32, err error) {
	return c.GetWithExpiration(intKey(key))
}

// DelInt is Del with a key as for SetInt.
func (c *Cache) DelInt(key int64) (affected bool) { return c.Del(intKey(key)) }

// Clear deletes all entries, and is ResetStatistics. The cache may be used meanwhile.
func (c *Cache) Clear() {
	c.entries.Clear()
	c.ResetStatistics()
}
