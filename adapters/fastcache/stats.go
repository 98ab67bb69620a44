// Stats: the figures of a cache.

package fastcache

// Stats are the figures of a cache. [Cache.UpdateStats] adds to them.
type Stats struct {
	GetCalls     uint64 // calls of Get, HasGet, Has and GetBig
	SetCalls     uint64 // calls of Set and SetBig, even if they stored nothing
	Misses       uint64 // those of GetCalls that found no entry
	Collisions   uint64 // 0: keys with the same hash are different entries
	Corruptions  uint64 // 0: a file that was changed is not loaded
	EntriesCount uint64
	BytesSize    uint64 // bytes of memory in use, the index too
	MaxBytesSize uint64 // the bound on BytesSize
	BigStats
}

// BigStats are the figures of [Cache.SetBig] and [Cache.GetBig].
type BigStats struct {
	GetBigCalls            uint64
	SetBigCalls            uint64
	TooBigKeyErrors        uint64 // calls of SetBig with a key of 64 KiB or more
	InvalidMetavalueErrors uint64 // 0: Get and GetBig find what Set and SetBig store
	InvalidValueLenErrors  uint64 // 0: a value is one entry
	InvalidValueHashErrors uint64 // 0: a value is one entry
}

// Reset sets all figures to 0.
func (s *Stats) Reset() { *s = Stats{} }

// UpdateStats adds the cache's figures to s. Calls count since the last [Cache.Reset], or since the
// cache was made or loaded. It locks one part of the cache after the other for a moment.
func (c *Cache) UpdateStats(s *Stats) {
	reset, now := c.reset.Load(), c.total()
	s.GetCalls += now.GetCalls - reset.GetCalls
	s.SetCalls += now.SetCalls - reset.SetCalls
	s.Misses += now.Misses - reset.Misses
	s.EntriesCount += now.EntriesCount
	s.BytesSize += now.BytesSize
	s.MaxBytesSize += now.MaxBytesSize
	s.GetBigCalls += now.GetBigCalls - reset.GetBigCalls
	s.SetBigCalls += now.SetBigCalls - reset.SetBigCalls
	s.TooBigKeyErrors += now.TooBigKeyErrors - reset.TooBigKeyErrors
}

// beginFigures makes UpdateStats count calls from now on.
func (c *Cache) beginFigures() {
	s := c.total()
	c.reset.Store(&s)
}

// total returns the figures since the cache was made.
func (c *Cache) total() Stats {
	s := c.entries.Stats()
	return Stats{
		GetCalls:     s.Hits + s.Misses,
		SetCalls:     s.Sets + c.skipped.Load(),
		Misses:       s.Misses,
		EntriesCount: uint64(s.Len),
		BytesSize:    uint64(s.Reserved),
		MaxBytesSize: uint64(s.MaxBytes),
		BigStats: BigStats{
			GetBigCalls:     c.getBig.Load(),
			SetBigCalls:     c.setBig.Load(),
			TooBigKeyErrors: c.tooBigKeys.Load(),
		},
	}
}
