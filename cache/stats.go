// Stats: a cache's figures.

package cache

import "github.com/freehold-go/freehold/internal/cuckoo"

// Stats is a snapshot of a cache, one shard after the other. So bytes that one shard lends another
// meanwhile may count twice. Sizes are bytes.
type Stats struct {
	Name     string // Options.Name
	Len      int    // entries in memory, with expired ones until they are dropped: see Cache.Len
	MaxBytes int    // the bound
	Reserved int    // memory from the parent; with bookkeeping on the Go heap it is at most MaxBytes
	Index    int    // of Reserved: the indexes of memory and disk
	Slots    int    // of the index of memory: Len of them are in use
	Live     int    // of Reserved: entries, with their heads
	Dead     int    // of Reserved: gone entries and unused ends of overwritten ones, until reclaimed

	Hits    uint64 // reads that found an entry
	Misses  uint64 // reads that found none; GetOrLoad counts one for a key that it loads
	Sets    uint64 // entries stored
	Evicted uint64 // entries dropped for room, without those that went to disk
	Expired uint64 // entries dropped after their TTL had passed
	Shrunk  uint64 // entries dropped to make the cache smaller
	Copied  uint64 // bytes of entries that the cache has moved within its memory

	Disk DiskStats // with Options.Disk

	Loads       uint64 // keys that GetOrLoad and GetOrLoadMany asked a load for, also in the background
	LoadsFailed uint64 // of Loads: the load failed or panicked; ErrNotFound is no failure
	Refreshes   uint64 // of Loads: in the background, for Options.RefreshAfter

	Undecodable uint64 // of Misses: reads of an Of whose Codec did not decode the value
}

// Stats returns the cache's figures. It locks one shard after the other for a moment, and may be
// called after Close.
func (c *Cache) Stats() Stats {
	st := Stats{Name: c.base.Name, MaxBytes: int(c.bound.now.Load())}
	st.Loads, st.LoadsFailed, st.Refreshes = c.loaded.all.Load(), c.loaded.failed.Load(), c.loaded.refreshes.Load()
	for i := range c.reads {
		st.Hits += c.reads[i].hits.Load()
		st.Misses += c.reads[i].misses.Load()
		st.Undecodable += c.reads[i].undecodable.Load()
	}
	for i := range c.shards {
		c.shards[i].addTo(&st)
	}
	c.addDisk(&st)
	return st
}

// AllStats returns the Stats of all open caches in order of creation, as [freehold.AllStats] does
// for heaps. A cache dropped without Close is left out once the collector has found it. It costs a
// call of Stats for each cache, and must not be called from OnEvict.
func AllStats() []Stats {
	var all []Stats
	for _, c := range opened.All() {
		all = append(all, c.Stats())
	}
	return all
}

func (s *shard) addTo(st *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Len += s.index.Len()
	st.Reserved += s.used
	st.Index += s.indexBytes()
	st.Slots += int(s.index.Buckets()) * cuckoo.Slots
	st.Live += s.live
	st.Dead += s.filled - s.live
	st.Sets += s.sets
	st.Evicted += s.dropped[Room]
	st.Expired += s.dropped[Expired]
	st.Shrunk += s.dropped[Shrunk]
	st.Copied += s.copied
	if s.tier != nil {
		s.tier.addTo(st)
	}
}
