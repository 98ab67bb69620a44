// Cache: shards by the hash of the key, each with a part of the bound.
//
//	hash of the key --> shard --> index: slot --> place: segment, offset --> item: key and value
//
//	Set      write.go finds the slot, reclaim.go makes room for the item, shard.go stores the slot
//	Get      pinned.go finds the slot and pins the segment, so that the item stays
//	no room  reclaim.go empties the segment that policy.go chooses, and copies the items that stay
//
// The files are layers. Each file calls only files below it, internal/cuckoo for the index, and
// internal/blocks for arrays of memory. All call cache.go for sizes that follow from the options.
// tier and fetch are exceptions: they also lock shards, and store and drop their items, by lend,
// write, shard and reclaim, and tier pauses sweeps.
//
//	of, snapshot, restore  types and streams, by the calls of a Cache
//	load, refresh          calls that load missing values, and older ones again
//	iterate                calls that pass over all entries
//	write, read            the other calls: lock a shard, find an entry, and change or read it
//	bound, lend            the shards' parts of MaxBytes
//	stats                  figures
//	sweep                  drops expired entries and returns memory, in the background
//	disk*                  Options.Disk, the file of its index, and the calls of its store
//	shard, rewrite         the entries of a shard
//	index                  slots of the shard's index, and its growth
//	reclaim                memory for items, by dropping expired ones and emptying segments
//	allot, fit, spare      memory for items, as long as some is available
//	tier, fetch            a shard's index of entries on disk; move entries to disk and back
//	pinned, version        the item that a slot refers to, and its version
//	policy, ghost          choose victims; they change only ghosts, in the notes of buckets
//	segment, expiry        blocks of items, their byte counts, expiry and pins
//	loads, marks, copies   loads and Restores under way, and copies of values in debug modes
//	slot, item             the layouts of a slot and an item
//	clock, coarse          time in seconds and ticks
//	timer                  begins sweeps

package cache

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/disk"
	"github.com/freehold-go/freehold/internal/hash"
	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/seam"
)

// A Cache keeps entries of bytes within a bound. Make one with [New]; calls of the zero Cache
// panic, except Len, Stats and Close.
type Cache struct {
	base         container.Base
	options      Options
	clock        clock
	seed         hash.Seed
	shards       []shard
	segmentBytes int
	largeBytes   int  // larger items are large: see isLarge
	readsSetTTL  bool // Options.Sliding or Expiry
	readers      pin.Holders
	reads        reads
	bound        bound
	number       uint64              // key in opened
	trimmer      interface{ Trim() } // the parent, or nil if it cannot
	returned     atomic.Int64        // bytes that large items freed since the last trim
	sweeper      sweeper
	copier       *copier // nil unless a debug mode is on
	refreshes    refreshes
	loaded       loadCounts
	disk         *disk.Store // nil without Options.Disk
	diskOff      error       // why New could not open the disk tier, or nil
	seam         seam.Seam
}

// opened has the open caches, without keeping a cache alive that is dropped without Close.
var opened owners.Registry[Cache, lockrank.Leaf]

var kind = container.Kind{Type: "cache.Cache", Maker: "cache.New", Is: "the cache is", Shared: true}

const (
	leastShardBytes = 4 << 20
	mostShardBytes  = 512 << 20

	// shardSegments is the approximate number of segments of a shard. More would waste more bytes
	// at their ends, and fewer would evict more entries at once.
	shardSegments     = 128
	leastSegmentBytes = 4 << 10
	mostSegmentBytes  = 1 << 20
)

// New returns a cache over parent, which must be safe for concurrent use and outlive the cache. The
// cache is empty, and takes no memory of parent before the first Set, unless Options.Disk has
// entries of an earlier process. Close gives all memory back. New panics if parent is nil, and for
// options that are a mistake.
func New(parent freehold.Allocator, o *Options) *Cache {
	c := &Cache{}
	c.init(parent, o)
	return c
}

func (c *Cache) init(parent freehold.Allocator, o *Options) {
	o.check()
	if o.Disk != nil { // openDisk takes memory
		owners.MustHaveParent("cache.New", parent)
	}
	c.options, c.seed, c.clock = *o, hash.NewSeed(), clockOf(o.Jitter)
	container.Make(c, &c.base, &kind, parent, o.Name)
	if o.Collect {
		container.Collect(c, &c.base, &kind)
	}
	c.copier = newCopier(parent)
	c.readsSetTTL = o.Sliding || o.Expiry != nil
	c.trimmer, _ = parent.(interface{ Trim() })
	c.shards = make([]shard, shardsFor(o.MaxBytes))
	c.segmentBytes = segmentBytesFor(parent, o.MaxBytes/len(c.shards))
	c.largeBytes = c.segmentBytes / largeShare
	for i := range c.shards {
		c.shards[i].init(c, uint64(i), c.shardLimit(o.MaxBytes))
	}
	c.sweeper.init(c, (*Cache).sweep)
	c.raise(firstVersion())
	if o.Disk != nil {
		c.openDisk()
	}
	c.bound.init(c, o) // from here on the budget may call
	c.number = opened.Add(c, true)
}

// shardsFor returns the number of shards of a cache, a power of two: up to four for each processor,
// so that writers seldom meet. Small caches have fewer, so that each shard has leastShardBytes.
// Very large ones have more, so that a shard has less than twice mostShardBytes.
func shardsFor(maxBytes int) int {
	n := max(min(4*runtime.GOMAXPROCS(0), maxBytes/leastShardBytes), maxBytes/mostShardBytes, 1)
	return 1 << (bits.Len(uint(n)) - 1)
}

// segmentBytesFor returns the size of a shard's segments: the smallest power of two, from least on,
// that the parent does not round up. It returns least if the parent rounds up all, as with red
// zones.
func segmentBytesFor(parent freehold.Allocator, shardBytes int) int {
	least := max(leastSegmentBytes, min(mostSegmentBytes, 1<<(bits.Len(uint(shardBytes/shardSegments))-1)))
	for n := least; n <= mostSegmentBytes; n *= 2 {
		if freehold.GoodSize(parent, n) == n {
			return n
		}
	}
	return least
}

// Two kinds of entries are stored in another way than most, for their size:
//   - An item above 1/largeShare of a segment is large. It shares no segment with smaller ones, and
//     may have one of its own.
//   - An entry above 1/hugeShare of a shard's share of the bound is huge. Other shards lend room
//     for it: see lend.go.
const (
	largeShare = 4
	hugeShare  = 4

	maxEntryBytes = 1 << 30 // of key and value together
)

// isLarge reports whether an item is large. bytes is its size, with its head.
func (c *Cache) isLarge(bytes int) bool { return bytes > c.largeBytes }

// runBytes returns the largest size of a segment with more than one item.
func (c *Cache) runBytes() int {
	return max(min(runShare*c.segmentBytes, mostRunBytes), c.segmentBytes)
}

// isHuge reports whether an entry is huge. bytes is the size of its key and value together. An
// entry above MaxEntry is not huge, since it is never stored.
func (c *Cache) isHuge(bytes int) bool {
	return bytes > int(c.bound.huge.Load()) && bytes <= c.maxEntry()
}

// shardLimit returns a shard's part of the bound, minus the shard's bytes on the Go heap.
func (c *Cache) shardLimit(maxBytes int) int { return maxBytes/len(c.shards) - c.ownBytes() }

// ownBytes returns the bytes of a shard on the Go heap.
func (c *Cache) ownBytes() int {
	return int(unsafe.Sizeof(shard{})) + int(unsafe.Sizeof(*c))/len(c.shards)
}

// shardOf returns the shard of a key with hash h.
func (c *Cache) shardOf(h uint64) *shard { return &c.shards[h>>32&uint64(len(c.shards)-1)] }

// MaxEntry returns the size of the largest entry that the cache takes, in bytes of key and value
// together: half of MaxBytes, and at most 1 GiB. Resize and a budget change it.
//
// An entry larger than a quarter of a shard, such as 1 MiB in a shard of 4 MiB, may make all shards
// evict.
func (c *Cache) MaxEntry() int {
	c.base.MustBeOpen(&kind, "MaxEntry")
	return c.maxEntry()
}

func (c *Cache) maxEntry() int { return min(int(c.bound.now.Load())/2, maxEntryBytes) }

// Len returns the number of entries in memory. It counts expired entries until they are dropped, and
// keys that GetOrLoad remembers as not found. It costs as much as Stats.
func (c *Cache) Len() int { return c.Stats().Len }

// Clear deletes all entries, also those on disk. An entry that is stored during the call may stay. A
// load that GetOrLoad began before the call is not stored.
func (c *Cache) Clear() {
	c.base.MustBeOpen(&kind, "Clear")
	for i := range c.shards {
		c.shards[i].loads.cleared()
	}
	for i := range c.shards {
		c.shards[i].clear()
	}
}

// Close returns all memory to the parent. No other call but Len and Stats may be under way: Close
// panics if it finds one, such as a View. Later calls panic, except Close, Len and Stats. Close the
// cache before its parent.
//
// Close cancels the loads that Options.RefreshAfter has begun, and waits for them. With
// Options.Disk, it writes the buffered entries and the index to disk.
func (c *Cache) Close() {
	c.refreshes.cancel()
	if !c.base.MayClose(&kind, true) {
		return
	}
	for i := range c.shards {
		if c.shards[i].isPinned() {
			arg.Panicf("cache.Cache.Close", "a call is under way, such as View")
		}
	}
	opened.Remove(c.number)
	c.sweeper.stop()
	c.bound.close()
	c.closeDisk()
	keepHighest(c.highestVersion())
	for i := range c.shards {
		c.shards[i].close()
	}
	container.Closed(c, &c.base)
}
