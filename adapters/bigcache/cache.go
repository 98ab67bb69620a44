// Cache: the interface of bigcache on a cache of freehold.
//
//	key --Hasher--> hash --> entry: | length of the key | key | value |, flags: requests, second
//	                     --> shard: the hash and the second, in the order of the writes
//
// An entry is found by its hash, as in bigcache: a key replaces another one with the same hash.
// bigcache returns expired entries until it removes them. So entries have no TTL in package cache,
// and shard.go finds the expired ones.

// Package bigcache replaces github.com/allegro/bigcache/v3 by freehold's cache:
//
//	go mod edit -replace github.com/freehold-go/freehold=../freehold # a clone
//	go mod edit -replace github.com/allegro/bigcache/v3=../freehold/adapters/bigcache
//	go mod tidy
//
// After the first release, the second line suffices, with the path
// github.com/freehold-go/freehold/adapters/bigcache@v0.1.0.
//
// Libraries import this package instead, since only the main module's replace lines count.
//
// The program needs no other change. What differs:
//
//   - An entry that is read often stays; bigcache evicts the oldest, whether it is read or not.
//   - HardMaxCacheSize bounds all memory except 12 to 24 bytes an entry for its timestamp. bigcache
//     takes about 40 bytes an entry beyond it, for a Go map. Without HardMaxCacheSize the bound is
//     512 GiB, and 2 GiB in a program of 32 bits.
//   - With one shard, an entry has at most half of HardMaxCacheSize. In bigcache it may have all.
//   - The fields of Config for the initial size have no effect: a new cache takes no memory. Verbose
//     has no lines about memory.
//   - [BigCache.Close] deletes all entries. The collector closes an unreachable cache that has no
//     CleanWindow, and no callback that refers to it.
//   - [BigCache.Capacity] is HardMaxCacheSize, or the memory in use if that is 0.
//   - Packages queue and server of bigcache are missing.
//
// Entries are in [freehold.Pages], and their timestamps in a heap. Package track shows both under the
// name "bigcache".
package bigcache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

// noBound is the first MaxBytes of a cache without HardMaxCacheSize. Resize then raises it to eight
// times that: a cache that begins with such a bound has more shards.
const noBound = min(64<<30, math.MaxInt/8)

// Errors of Get and Set.
var (
	ErrEntryNotFound = errors.New("Entry not found")
	errTooLarge      = errors.New("entry is bigger than max shard size")
)

// A BigCache keeps entries of bytes. Any number of goroutines may call its methods at the same
// time. [New] makes one.
type BigCache struct {
	*memory
	*counts
	config     Config
	clock      clock
	hash       Hasher
	lifeWindow uint64 // in seconds
	most       int    // bytes of an entry; more is an error
	stop       context.CancelFunc
}

// A Response says whether the entry that GetWithInfo returns has expired.
type Response struct{ EntryStatus RemoveReason }

// A clock tells the time in seconds.
type clock interface{ Epoch() int64 }

type systemClock struct{}

func (systemClock) Epoch() int64 { return time.Now().Unix() }

// New returns an empty cache. If config has a CleanWindow, a goroutine removes expired entries
// until ctx is done or the cache is closed. New fails if Shards is no power of two, or another
// number is negative.
func New(ctx context.Context, config Config) (*BigCache, error) {
	return newBigCache(ctx, config, systemClock{})
}

// NewBigCache is New with the background context.
//
// Deprecated: use New.
func NewBigCache(config Config) (*BigCache, error) { return New(context.Background(), config) }

func newBigCache(ctx context.Context, config Config, clock clock) (*BigCache, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Hasher == nil {
		config.Hasher = newDefaultHasher()
	}
	if config.Logger == nil {
		config.Logger = DefaultLogger()
	}
	c := &BigCache{
		memory:     newMemory(&config),
		counts:     new(counts),
		config:     config,
		clock:      clock,
		hash:       config.Hasher,
		lifeWindow: uint64(config.LifeWindow.Seconds()),
		most:       math.MaxInt,
	}
	if config.HardMaxCacheSize > 0 {
		c.most = config.HardMaxCacheSize << 20 / config.Shards
	}
	c.reset.Store(new(Stats))
	runtime.AddCleanup(c, (*memory).close, c.memory)
	c.stop = func() {}
	if config.CleanWindow > 0 {
		ctx, c.stop = context.WithCancel(ctx)
		go c.clean(ctx)
	}
	return c, nil
}

func (c *BigCache) clean(ctx context.Context) {
	ticker := time.NewTicker(c.config.CleanWindow)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.cleanUp(uint64(c.clock.Epoch()))
		}
	}
}

// Close ends the goroutine that removes expired entries, and deletes all entries. Later calls find
// an empty cache.
func (c *BigCache) Close() error {
	c.stop()
	return c.Reset()
}

// wrap appends an entry's bytes to b.
func wrap(b []byte, key string, value []byte) []byte {
	return append(append(binary.AppendUvarint(b, uint64(len(key))), key...), value...)
}

// unwrap returns the key and the value in an entry's bytes.
func unwrap(b []byte) (key, value []byte) {
	n, head := binary.Uvarint(b)
	b = b[head:]
	return b[:n], b[n:]
}

// copied returns a copy that is not nil.
func copied(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// isExpired reports whether an entry with these flags has expired.
func (c *BigCache) isExpired(flags, now uint64) bool {
	at := secondOf(flags)
	return now > at && now-at > c.lifeWindow
}

// The flags of an entry are the second at which it was written, and the requests for it.
func secondOf(flags uint64) uint64   { return flags & math.MaxUint32 }
func requestsOf(flags uint64) uint32 { return uint32(flags >> 32) }

const oneRequest = 1 << 32

// Get returns a copy of key's value, even if it has expired, until it is removed. The error is
// ErrEntryNotFound.
func (c *BigCache) Get(key string) ([]byte, error) {
	value, _, err := c.get(key)
	return value, err
}

// GetWithInfo is Get. The Response's status is Expired or 0.
func (c *BigCache) GetWithInfo(key string) (value []byte, r Response, err error) {
	value, flags, err := c.get(key)
	if err == nil && c.isExpired(flags, uint64(c.clock.Epoch())) {
		r.EntryStatus = Expired
	}
	return value, r, err
}

func (c *BigCache) get(key string) (value []byte, flags uint64, err error) {
	defer runtime.KeepAlive(c)
	hash := c.hash.Sum64(key)
	id := idOf(hash)
	var o outcome
	read := func(e cache.Entry) {
		k, v := unwrap(e.Value)
		if o.found = true; string(k) != key {
			o.other = copied(k)
			return
		}
		value, flags = copied(v), e.Flags
	}
	if c.config.StatsEnabled {
		c.entries.Update(id[:], func(e *cache.Entry, found bool) cache.Change {
			if !found {
				return cache.Keep
			}
			if read(*e); o.other != nil {
				return cache.Keep
			}
			e.Flags += oneRequest
			return cache.Mark
		})
		c.count(&o)
	} else if c.entries.View(id[:], read); o.other != nil {
		c.hits.Add(-1) // View has counted one
	}
	if o.other != nil {
		c.collided(key, o.other, hash)
	}
	if value == nil {
		return nil, 0, ErrEntryNotFound
	}
	return value, flags, nil
}

// Set stores a copy of entry for key. It fails if the entry is larger than HardMaxCacheSize divided
// by Shards, or with [freehold.ErrOutOfMemory]. The key then has no entry.
func (c *BigCache) Set(key string, entry []byte) error {
	return c.write(key, func(b []byte, _ *cache.Entry) []byte { return wrap(b, key, entry) })
}

// Append appends entry to the value of key. Without a value it is Set.
func (c *BigCache) Append(key string, entry []byte) error {
	var o outcome
	err := c.write(key, func(b []byte, old *cache.Entry) []byte {
		if o = (outcome{found: old.Value != nil}); o.found {
			k, _ := unwrap(old.Value)
			if string(k) == key {
				if c.config.StatsEnabled {
					old.Flags += oneRequest
				}
				return append(append(b, old.Value...), entry...)
			}
			o.other = copied(k)
		}
		return wrap(b, key, entry)
	})
	c.count(&o)
	if o.other != nil {
		c.collided(key, o.other, c.hash.Sum64(key))
	}
	return err
}

// write stores the bytes that f appends to b. old is the stored entry, whose Value is nil if there is
// none. f may change its requests.
func (c *BigCache) write(key string, f func(b []byte, old *cache.Entry) []byte) error {
	defer runtime.KeepAlive(c)
	id := idOf(c.hash.Sum64(key))
	s := c.shardOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := uint32(c.clock.Epoch())
	noted, tooLarge := false, false
	_, err := c.entries.Update(id[:], func(e *cache.Entry, found bool) cache.Change {
		noted = found && secondOf(e.Flags) == uint64(now)
		s.scratch = f(s.scratch[:0], e)
		if tooLarge = len(s.scratch) > c.most; tooLarge {
			return cache.Remove
		}
		e.Value = s.scratch
		e.Flags = e.Flags&^math.MaxUint32 | uint64(now)
		return cache.Store
	})
	if err == nil && !noted && !tooLarge {
		err = c.note(s, timestamp{id, now})
	}
	if err != nil {
		c.entries.Delete(id[:])
	}
	if cap(s.scratch) > maxScratch {
		s.scratch = nil
	}
	if c.config.CleanWindow <= 0 {
		c.removeOldest(s, uint64(now))
	}
	if tooLarge || errors.Is(err, cache.ErrTooLarge) {
		return errTooLarge
	}
	return err
}

// Delete deletes key's entry, and calls the callback with the reason Deleted. The error is
// ErrEntryNotFound.
func (c *BigCache) Delete(key string) error {
	defer runtime.KeepAlive(c)
	id := idOf(c.hash.Sum64(key))
	deleted := false
	c.entries.Update(id[:], func(e *cache.Entry, found bool) cache.Change {
		if deleted = found; !found {
			return cache.Keep
		}
		c.config.removed(*e, Deleted)
		return cache.Remove
	})
	if !deleted {
		c.delMisses.Add(1)
		return ErrEntryNotFound
	}
	c.delHits.Add(1)
	return nil
}

// Reset deletes all entries without a callback.
func (c *BigCache) Reset() error {
	defer runtime.KeepAlive(c)
	for i := range c.shards {
		c.shards[i].mu.Lock()
		defer c.shards[i].mu.Unlock()
		c.shards[i].free()
	}
	c.entries.Clear()
	return nil
}

// Len returns the number of entries. It counts expired entries until they are removed.
func (c *BigCache) Len() int {
	defer runtime.KeepAlive(c)
	return c.entries.Len()
}

// Capacity returns HardMaxCacheSize in bytes, or the bytes in use if that is 0.
func (c *BigCache) Capacity() int {
	defer runtime.KeepAlive(c)
	if c.config.HardMaxCacheSize > 0 {
		return c.config.HardMaxCacheSize << 20
	}
	return c.entries.Stats().Reserved
}

// newEntries returns the cache for a config.
func newEntries(config *Config) *cache.Cache {
	o := cache.Options{MaxBytes: config.HardMaxCacheSize << 20, Name: "bigcache"}
	if config.HardMaxCacheSize == 0 {
		o.MaxBytes = noBound
	}
	if callbacks := *config; callbacks.hasCallback() {
		o.OnEvict = func(_ []byte, e cache.Entry, _ cache.Reason) { callbacks.removed(e, NoSpace) }
	}
	entries := cache.New(freehold.Pages(), &o)
	if config.HardMaxCacheSize == 0 {
		entries.Resize(8 * noBound)
	}
	return entries
}

func (c *BigCache) collided(key string, other []byte, hash uint64) {
	c.collisions.Add(1)
	if c.config.Verbose {
		c.config.Logger.Printf("Collision detected. Both %q and %q have the same hash %x", key, other, hash)
	}
}

// check returns an error for an invalid number.
func (config *Config) check() error {
	if n := config.Shards; n <= 0 || n&(n-1) != 0 {
		return errors.New("Shards number must be power of two")
	}
	for _, number := range []struct {
		name  string
		value int
	}{
		{"MaxEntrySize", config.MaxEntrySize},
		{"MaxEntriesInWindow", config.MaxEntriesInWindow},
		{"HardMaxCacheSize", config.HardMaxCacheSize},
	} {
		if number.value < 0 {
			return fmt.Errorf("%s must be >= 0", number.name)
		}
	}
	return nil
}
