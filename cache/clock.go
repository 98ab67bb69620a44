// Clock: seconds since the cache was made, and what TTLs are in them.

package cache

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"
)

// A clock counts seconds from 1, so that 0 is never.
type clock struct {
	begin  time.Time
	jitter float64
	since  func(time.Time) time.Duration // time.Since, except in tests
}

// now returns the second.
func (c *clock) now() uint32 { return uint32(c.since(c.begin)/time.Second) + 1 }

// expires returns the second at which what is stored now has expired, not before ttl has passed, less
// its jitter; 0 if ttl is 0.
func (c *clock) expires(ttl time.Duration) uint32 {
	if ttl == 0 {
		return 0
	}
	ttl = min(ttl, math.MaxInt64/2)
	if c.jitter > 0 {
		ttl -= time.Duration(float64(ttl) * c.jitter * rand.Float64())
	}
	seconds := (c.since(c.begin)+ttl-1)/time.Second + 2
	return uint32(min(max(seconds, 1), math.MaxUint32))
}

// left returns the TTL of what has expired at that second. From then on it is negative, as 0 is for ever.
func (c *clock) left(expires uint32) time.Duration {
	if expires == 0 {
		return 0
	}
	return cmp.Or(time.Duration(int64(expires)-int64(c.now()))*time.Second, -1)
}

// accessOf returns the access of an entry that is stored now.
func (c *clock) accessOf(e *Entry) access {
	now := c.now()
	a := now - min(uint32(min(max(e.Idle, 0)/time.Second, math.MaxUint32)), now)
	if e.Read {
		a |= wasRead
	}
	return a
}
