// Cache: shards by the hash of the key, each with a part of the bound.

package cache

import (
	"math/bits"
	"runtime"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/hash"
)

// A Cache keeps entries of bytes within a bound. Make one with [New]; calls of the zero Cache
// panic, except Len, Stats and Close.
type Cache struct {
	base    container.Base
	options Options
	seed    hash.Seed
	shards  []shard
	loads   loads
}

var kind = container.Kind{Type: "cache.Cache", Maker: "cache.New", Is: "the cache is"}

// New returns an empty cache over parent, which must be safe for concurrent use and outlive the
// cache. It takes no memory of parent; Set does, and Close gives it back. It panics if parent is
// nil, and for options that are a mistake.
func New(parent freehold.Allocator, o *Options) *Cache {
	o.check()
	c := &Cache{options: *o, seed: hash.NewSeed()}
	c.shards = make([]shard, shardsFor(o.MaxBytes))
	for i := range c.shards {
		c.shards[i].init(c)
	}
	container.Make(c, &c.base, &kind, parent, o.Name)
	return c
}

const (
	leastShardBytes = 4 << 20
	mostShardBytes  = 512 << 20
)

// shardsFor returns how many shards a cache of that size has, a power of two: so many that writers
// seldom meet, as far as each has room for large entries.
func shardsFor(maxBytes int) int {
	n := max(min(4*runtime.GOMAXPROCS(0), maxBytes/leastShardBytes), maxBytes/mostShardBytes, 1)
	return 1 << (bits.Len(uint(n)) - 1)
}

// shardOf returns the shard of a key with that hash.
func (c *Cache) shardOf(h uint64) *shard { return &c.shards[h>>32&uint64(len(c.shards)-1)] }

// MaxEntry returns the size of the largest entry that the cache takes, in bytes of key and value
// together. Resize changes it.
func (c *Cache) MaxEntry() int {
	c.base.MustBeOpen(&kind, "MaxEntry")
	return c.options.MaxBytes / len(c.shards) / 4
}

// Len returns the number of entries, with those that have expired and were not dropped yet.
func (c *Cache) Len() int { return c.Stats().Len }

// Resize changes MaxBytes while the cache is in use. If it becomes less, the call drops entries
// and returns memory to the parent, shard by shard; what readers hold at that moment follows with
// later writes. It panics if maxBytes is less than MinBytes for each of the shards, whose number
// stays.
func (c *Cache) Resize(maxBytes int) {
	c.base.MustBeOpen(&kind, "Resize")
	c.resize(maxBytes)
}

// Clear deletes all entries. Those that are stored during the call may stay.
func (c *Cache) Clear() {
	c.base.MustBeOpen(&kind, "Clear")
	for i := range c.shards {
		c.shards[i].clear()
	}
}

// Close returns all memory to the parent. No other call may be under way. Later calls panic, except
// Close, Len and Stats. Close the cache before its parent.
func (c *Cache) Close() {
	if !c.base.MayClose(&kind, true) {
		return
	}
	for i := range c.shards {
		c.shards[i].clear()
	}
	container.Closed(c, &c.base)
}
