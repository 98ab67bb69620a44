// Versions: a number for each state of a key, which only grows.
//
//	position   age of the segment | offset there, in units of 4 B | rewrites 5 bits
//
// The position of an item is its version, so most versions take no memory. A new version must be
// above the key's previous one: the version of the key's item, or the floor of the shard if the key
// has no item. The floor is the highest version of all items that left no successor. A new segment
// has the highest age, so its positions are above both. Positions in an older open segment may be
// lower. Then the item carries a version of its own in 8 B, one above the previous.
//
// Invariants (check verifies them):
//   - every version that a shard has given is at most its top, the last position of its newest age
//   - so the next segment that begins is above all of them

package cache

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"
)

// versionEpoch is the time, in Unix nanoseconds, at which versions begin: the year 2026.
const versionEpoch = 1767225600 * int64(time.Second)

// versionsPerNano is the number by which the first version of a cache grows in each nanosecond. A
// byte that is written to one of n shards takes 8n versions of that shard. So a process starts
// above all versions of an earlier one, with two exceptions: the earlier process wrote more than
// 1 GB/s to all shards together for all of its life, or the system's clock was set back. The
// numbers last until the year 2062.
const versionsPerNano = 8

// highest is an upper bound of the versions of all closed caches of this process.
var highest atomic.Uint64

// firstVersion returns an upper bound of the versions of closed caches and of earlier processes.
func firstVersion() uint64 {
	return max(uint64(max(time.Now().UnixNano()-versionEpoch, 0))*versionsPerNano, highest.Load())
}

// keepHighest raises highest to at least v.
func keepHighest(v uint64) {
	for old := highest.Load(); v > old && !highest.CompareAndSwap(old, v); old = highest.Load() {
	}
}

// position returns the version of an item at an offset of segment n before its first rewrite.
func (s *shard) position(n, offset uint32) uint64 {
	units := uint64(offset / unitBytes)
	age := s.segs.at(n).age + units>>s.segs.ageBits*uint64(len(s.c.shards))
	return (age<<s.segs.ageBits | units&(1<<s.segs.ageBits-1)) << rewriteBits
}

// version returns the version of the item that a slot refers to.
func (s *shard) version(w slot, it *item) uint64 {
	if it.shape&versioned != 0 {
		return binary.NativeEndian.Uint64(it.versionAt())
	}
	return s.position(s.segs.split(w.place())) + uint64(it.shape.rewrites())
}

// nextAge returns an age for a new segment. No other shard uses it, so versions of different keys
// differ too, as memcached's tests expect. Items with versions of their own are the exception.
func (s *shard) nextAge() uint64 {
	n := uint64(len(s.c.shards))
	return (s.age/n+1)*n + s.number
}

// agesOf returns the difference of ages that a segment of the given bytes needs to the next one:
// each segmentBytes of it have an age.
func (s *shard) agesOf(bytes int) uint64 {
	return uint64((bytes-1)>>s.segs.ageBits/unitBytes+1) * uint64(len(s.c.shards))
}

// top returns the last position of the newest age.
func (s *shard) top() uint64 { return (s.age+1)<<(s.segs.ageBits+rewriteBits) - 1 }

// raise makes all later versions of the cache higher than v.
func (c *Cache) raise(v uint64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.reach(v)
		s.raiseFloor(v)
		s.mu.Unlock()
	}
}

// highestVersion returns an upper bound of the versions of all shards.
func (c *Cache) highestVersion() (v uint64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		v = max(v, s.top())
		s.mu.Unlock()
	}
	return v
}

// abovePositions is above all positions. As want.before, it gives the item a version of its own in
// any place.
const abovePositions = math.MaxUint64

// setVersion writes the version of a versioned item.
func (s *shard) setVersion(it *item, v uint64) {
	s.reach(v)
	binary.NativeEndian.PutUint64(it.versionAt(), v)
}

// advance sets the shape of an item that is rewritten in place. It also gives the item the next
// version, unless keeps is set.
func (s *shard) advance(it *item, sh shape, keeps bool) {
	if keeps {
		it.shape = sh.withRewrites(it.shape.rewrites())
		return
	}
	if sh&versioned == 0 {
		it.shape = sh.withRewrites(it.shape.rewrites() + 1)
		return
	}
	v := binary.NativeEndian.Uint64(it.versionAt())
	it.shape = sh
	s.setVersion(it, v+1)
}

// reach raises the top to at least v.
func (s *shard) reach(v uint64) { s.age = max(s.age, v>>(s.segs.ageBits+rewriteBits)) }

// raiseFloor raises the floor to at least v, the version of an item that left no successor.
func (s *shard) raiseFloor(v uint64) { s.floor = max(s.floor, v) }
