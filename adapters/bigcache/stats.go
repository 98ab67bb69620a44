// Stats: the figures of a cache.

package bigcache

import (
	"runtime"
	"sync/atomic"

	"github.com/freehold-go/freehold/cache"
)

// Stats are the figures of a cache since it was made, or since the last [BigCache.ResetStats].
type Stats struct {
	Hits       int64 `json:"hits"`          // calls of Get, GetWithInfo and Append that found the key
	Misses     int64 `json:"misses"`        // such calls that found no entry
	DelHits    int64 `json:"delete_hits"`   // calls of Delete that found an entry
	DelMisses  int64 `json:"delete_misses"` // calls of Delete that found none
	Collisions int64 `json:"collisions"`    // calls that found another key with the same hash
}

// counts are the figures that package cache does not count. They are outside of the BigCache: a write
// to them would slow down reads of its first field, in the same cache line.
type counts struct {
	hits, misses                   atomic.Int64 // corrections to those of package cache
	delHits, delMisses, collisions atomic.Int64
	reset                          atomic.Pointer[Stats] // at the last ResetStats
}

// An outcome says whether a call found an entry. other is that entry's key, if it is not the key of
// the call.
type outcome struct {
	found bool
	other []byte
}

// count counts the outcome of a call that package cache does not count, as a hit or a miss. collided
// counts collisions.
func (n *counts) count(o *outcome) {
	switch {
	case !o.found:
		n.misses.Add(1)
	case o.other == nil:
		n.hits.Add(1)
	}
}

// total returns the figures since the cache was made.
func (c *BigCache) total() Stats {
	defer runtime.KeepAlive(c)
	s := c.entries.Stats()
	return Stats{
		Hits:       int64(s.Hits) + c.hits.Load(),
		Misses:     int64(s.Misses) + c.misses.Load(),
		DelHits:    c.delHits.Load(),
		DelMisses:  c.delMisses.Load(),
		Collisions: c.collisions.Load(),
	}
}

// Stats returns the figures.
func (c *BigCache) Stats() Stats {
	reset, s := c.reset.Load(), c.total()
	s.Hits -= reset.Hits
	s.Misses -= reset.Misses
	s.DelHits -= reset.DelHits
	s.DelMisses -= reset.DelMisses
	s.Collisions -= reset.Collisions
	return s
}

// ResetStats begins the figures of [BigCache.Stats] anew.
func (c *BigCache) ResetStats() error {
	s := c.total()
	c.reset.Store(&s)
	return nil
}

// KeyMetadata returns the figures of key's entry.
func (c *BigCache) KeyMetadata(key string) (m Metadata) {
	defer runtime.KeepAlive(c)
	id := idOf(c.hash.Sum64(key))
	c.entries.Peek(id[:], func(e cache.Entry) { m.RequestCount = requestsOf(e.Flags) })
	return m
}
