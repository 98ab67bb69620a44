// Clock: seconds since the cache was made, for the TTLs of entries.
//
//	begin       now                     expires
//	|--2--|--3--|--4--|-- ... --|--------|
//	                  left, rounded down |
//
// Second 2 begins with a second of the system's clock: the one in which the cache was made. So
// seconds of all caches begin at the same moments. Copies of an entry in several caches, or in a
// snapshot, expire at the same moment.

package cache

import (
	"math"
	"math/rand/v2"
	"time"
)

// A clock counts seconds from firstSecond, so that 0 can mean never, and 1 handled: see expiry.go.
type clock struct {
	begin  time.Time
	jitter float64
	since  func(time.Time) time.Duration // time.Since, except in tests
	wall   func() time.Time              // time.Now, except in tests
}

const firstSecond = handled + 1

func clockOf(jitter float64) clock {
	now := time.Now()
	return clock{now.Add(-time.Duration(now.Nanosecond())), jitter, time.Since, time.Now}
}

// now returns the current second.
func (c *clock) now() uint32 { return uint32(c.since(c.begin)/time.Second) + firstSecond }

// expires returns the second at which an entry that is stored now expires: the first one to begin
// after ttl, which jitter shortens. It returns 0, for never, if ttl is 0.
func (c *clock) expires(ttl time.Duration) uint32 {
	if ttl == 0 {
		return 0
	}
	ttl = min(ttl, math.MaxInt64/2)
	if c.jitter > 0 {
		ttl -= time.Duration(float64(ttl) * c.jitter * rand.Float64())
	}
	return second((c.since(c.begin)+ttl-1)/time.Second + 1)
}

// second returns the second that begins n seconds after the clock's begin.
func second(n time.Duration) uint32 { return uint32(min(max(n+firstSecond, handled), math.MaxUint32)) }

// left returns the TTL of an entry that expires at the given second, rounded down to a second. In
// the entry's last second left returns a nanosecond, since 0 means for ever. After that it is
// negative. As expires rounds up, storing an entry with the TTL from left does not change when it
// expires.
func (c *clock) left(expires uint32) time.Duration {
	if expires == 0 {
		return 0
	}
	switch left := c.until(expires); {
	case left <= 0:
		return -1
	case left < time.Second:
		return 1
	default:
		return left.Truncate(time.Second)
	}
}

// until returns the time until the given second begins.
func (c *clock) until(second uint32) time.Duration {
	return time.Duration(int64(second)-firstSecond)*time.Second - c.since(c.begin)
}

// unix returns the Unix time at which the second expires begins, or 0 if expires is 0, for never.
func (c *clock) unix(expires uint32) uint64 {
	if expires == 0 {
		return 0
	}
	at := c.wall().Add(c.until(expires)).Round(time.Second).Unix()
	return uint64(max(at, 1))
}

// fromUnix is the reverse of unix. It reports false if the time has passed.
func (c *clock) fromUnix(at uint64) (expires uint32, ok bool) {
	if at == 0 {
		return 0, true
	}
	const farthest = 1 << 40 // seconds, beyond all TTLs
	left := min(time.Unix(int64(min(at, farthest)), 0).Sub(c.wall()), math.MaxInt64/2)
	expires = second((c.since(c.begin) + left).Round(time.Second) / time.Second)
	return expires, left > 0
}

// accessOf returns the access of an entry that is stored now, from its Read and Idle.
func (c *clock) accessOf(e *Entry) access {
	now := c.now()
	a := now - min(uint32(min(max(e.Idle, 0)/time.Second, math.MaxUint32)), now)
	if e.Read {
		a |= wasRead
	}
	return a
}

// seconds returns a TTL in seconds, rounded up. The TTL is not negative.
func seconds(ttl time.Duration) uint32 {
	return uint32(min((ttl+time.Second-1)/time.Second, 1<<30))
}
