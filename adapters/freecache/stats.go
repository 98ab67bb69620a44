// Figures: the counts of package cache, and corrections.

package freecache

import (
	"sync/atomic"
	"time"
)

// counts are the figures that package cache does not count. They are outside of the Cache: a write
// to them would slow down reads of its first field, in the same cache line.
type counts struct {
	hits, misses atomic.Int64            // corrections to those of package cache
	expired      atomic.Int64            // entries that a call found expired
	deleted      atomic.Int64            // entries that Del deleted
	touched      atomic.Int64            // calls of Touch that found an entry
	reset        atomic.Pointer[figures] // at the last ResetStatistics
}

// figures are what ResetStatistics resets.
type figures struct{ evicted, expired, overwrites, hits, misses int64 }

// countRead counts a read by Update, which package cache does not count.
func (n *counts) countRead(found, expired bool) {
	if found {
		n.hits.Add(1)
		return
	}
	n.misses.Add(1)
	if expired {
		n.expired.Add(1)
	}
}

// total returns the figures since the cache was made. Each entry that was stored either is there,
// was dropped or deleted, or was overwritten.
func (c *Cache) total() figures {
	s := c.entries.Stats()
	f := figures{
		evicted: int64(s.Evicted),
		expired: int64(s.Expired) + c.expired.Load(),
		hits:    int64(s.Hits) + c.hits.Load(),
		misses:  int64(s.Misses) + c.misses.Load(),
	}
	f.overwrites = int64(s.Sets) - c.touched.Load() - int64(s.Len) - f.evicted - f.expired - c.deleted.Load()
	return f
}

// EvacuateCount returns the number of entries that were evicted to make room.
func (c *Cache) EvacuateCount() int64 { return c.total().evicted - c.reset.Load().evicted }

// ExpiredCount returns the number of entries that were dropped because they had expired.
func (c *Cache) ExpiredCount() int64 { return c.total().expired - c.reset.Load().expired }

// OverwriteCount returns the number of entries that were replaced by a Set of their key. It is not
// exact while other calls run.
func (c *Cache) OverwriteCount() int64 { return c.total().overwrites - c.reset.Load().overwrites }

// HitCount returns the number of reads that found an entry.
func (c *Cache) HitCount() int64 { return c.total().hits - c.reset.Load().hits }

// MissCount returns the number of reads that found none.
func (c *Cache) MissCount() int64 { return c.total().misses - c.reset.Load().misses }

// LookupCount returns the number of reads.
func (c *Cache) LookupCount() int64 { return c.HitCount() + c.MissCount() }

// HitRate returns the share of reads that found an entry, or 0 if there were none.
func (c *Cache) HitRate() float64 {
	hits, misses := c.HitCount(), c.MissCount()
	if hits+misses == 0 {
		return 0
	}
	return float64(hits) / float64(hits+misses)
}

// TouchedCount returns the number of calls of Touch that found an entry. ResetStatistics leaves it.
func (c *Cache) TouchedCount() int64 { return c.touched.Load() }

// EntryCount returns the number of entries. It counts expired entries until they are dropped.
func (c *Cache) EntryCount() int64 {
	return int64(c.entries.Len())
}

// AverageAccessTime returns the mean second at which the entries were last stored or read, or 0 if
// there are none. It visits and copies each entry.
func (c *Cache) AverageAccessTime() int64 {
	var n, idle int64 // seconds
	for _, e := range c.entries.All() {
		n++
		idle += int64(e.Idle / time.Second)
	}
	if n == 0 {
		return 0
	}
	return int64(c.timer.Now()) - idle/n
}

// ResetStatistics sets all figures to 0 but EntryCount, AverageAccessTime and TouchedCount.
func (c *Cache) ResetStatistics() {
	f := c.total()
	c.reset.Store(&f)
}
