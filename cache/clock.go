// Clock: seconds since the cache was made, for the TTLs of entries, and ticks for short ones.
//
//	begin       now                     expires
//	|--2--|--3--|--4--|-- ... --|--------|
//	                  left, rounded down |
//
// Second 2 begins with a second of the system's clock: the one in which the cache was made. So
// seconds of all caches begin at the same moments. Copies of an entry in several caches, or in a
// snapshot, expire at the same moment.
//
// An entry expires at a second, or at a tick of 1/1024 s if its TTL is short and no whole number of
// seconds. Both are stored in 32 bits:
//
//	| 0 | second 31 bits |
//	| 1 | tick since begin, modulo 2^31: 24 days |
//
// An expiry in ticks means the tick that is nearest to now. It is less than 12 days away, since
// sweeps drop expired items.

package cache

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A clock counts seconds from firstSecond, so that 0 can mean never, and 1 handled: see expiry.go.
// coarse.go has its calls for the current second.
type clock struct {
	begin  time.Time
	jitter float64
	since  func(time.Time) time.Duration   // time.Since, except in tests
	wall   func() time.Time                // time.Now, except in tests
	after  func(d time.Duration, f func()) // time.AfterFunc, except in tests
	coarse *atomic.Uint32                  // a timer may outlive the cache
}

const (
	firstSecond = handled + 1

	inTicks        uint32 = 1 << 31 // the bit of an expiry that is a tick
	ticksPerSecond        = 1024
	mostTicks             = time.Minute     // longer TTLs are in seconds
	lastSecond            = time.Nanosecond // the TTL that left returns in an entry's last second
)

func clockOf(jitter float64) clock {
	now := time.Now()
	c := clock{now.Add(-time.Duration(now.Nanosecond())), jitter, time.Since, time.Now, afterFunc, new(atomic.Uint32)}
	if now.UnixNano() < versionEpoch { // in a bubble
		c.coarse.Store(exact)
	}
	return c
}

func afterFunc(d time.Duration, f func()) { time.AfterFunc(d, f) }

func secondAt(t time.Duration) uint32 { return uint32(t/time.Second) + firstSecond }

// expires returns the expiry of an entry that is stored now: the first second or tick that begins
// after ttl, which jitter shortens. For a ttl of 0 it is 0, which is never.
func (c *clock) expires(ttl time.Duration) uint32 {
	if ttl == 0 {
		return 0
	}
	ttl = c.shortened(ttl)
	if ttl < mostTicks && ttl%time.Second != 0 && ttl != lastSecond {
		return uint32(tickAfter(c.since(c.begin)+ttl)) | inTicks
	}
	return c.secondAfter(ttl)
}

// shortened returns a TTL that jitter has shortened, and at most half of the largest Duration.
func (c *clock) shortened(ttl time.Duration) time.Duration {
	ttl = min(ttl, math.MaxInt64/2)
	if c.jitter > 0 {
		ttl -= time.Duration(float64(ttl) * c.jitter * rand.Float64())
	}
	return ttl
}

// secondAfter returns the first second that begins ttl from now or later.
func (c *clock) secondAfter(ttl time.Duration) uint32 {
	return max(second((c.since(c.begin)+ttl-1)/time.Second+1), firstSecond) // a bubble's clock is behind
}

// second returns the second that begins n seconds after the clock's begin, within the 31 bits.
func second(n time.Duration) uint32 { return uint32(min(max(n+firstSecond, handled), math.MaxInt32)) }

// tickAfter returns the first tick to begin at or after a time since the clock's begin, and
// tickBegin the time at which a tick begins. Both avoid the overflow of a product of nanoseconds.
func tickAfter(at time.Duration) int64 {
	rest := (at%time.Second*ticksPerSecond + time.Second - 1) / time.Second
	return int64(at/time.Second)*ticksPerSecond + int64(rest)
}

func tickBegin(tick int64) time.Duration {
	rest := (tick%ticksPerSecond*int64(time.Second) + ticksPerSecond - 1) / ticksPerSecond
	return time.Duration(tick/ticksPerSecond)*time.Second + time.Duration(rest)
}

// moment returns when an entry with that expiry expires, as a time since the clock's begin. since
// is the current time since begin.
func moment(expires uint32, since time.Duration) time.Duration {
	if expires&inTicks == 0 {
		return time.Duration(int64(expires)-firstSecond) * time.Second
	}
	now := tickAfter(since)
	return tickBegin(now + int64(int32((expires-uint32(now))<<1)>>1))
}

// secondOf returns the first second that begins at or after an expiry.
func (c *clock) secondOf(expires uint32) uint32 {
	if expires&inTicks == 0 {
		return expires
	}
	return second((moment(expires, c.since(c.begin))-1)/time.Second + 1)
}

// isSooner reports whether an expiry needs an earlier sweep than another one.
func (c *clock) isSooner(expires, other uint32) bool {
	return expires != 0 && c.secondOf(expires) < c.secondOf(other)
}

// left returns the TTL of an entry with that expiry, or a negative one if it has expired. For an
// expiry in seconds, left rounds down to a second, and returns lastSecond in the last one, since 0
// means never. As expires rounds up, an entry that is stored again with this TTL keeps its expiry.
// For an expiry in ticks, this holds if no time passes in between. There left returns neither
// lastSecond nor whole seconds, which expires would turn into seconds.
func (c *clock) left(expires uint32) time.Duration {
	if expires == 0 {
		return 0
	}
	left := c.until(expires)
	switch {
	case left <= 0:
		return -1
	case expires&inTicks != 0 && left%time.Second == 0:
		return left - 1
	case expires&inTicks != 0:
		return max(left, lastSecond+1)
	case left < time.Second:
		return lastSecond
	}
	return left.Truncate(time.Second)
}

// until returns the time until an entry with that expiry expires.
func (c *clock) until(expires uint32) time.Duration {
	since := c.since(c.begin)
	return moment(expires, since) - since
}

// unix returns the Unix time at which an entry with that expiry expires, or 0 for never. A tick is
// rounded down.
func (c *clock) unix(expires uint32) uint64 {
	if expires == 0 {
		return 0
	}
	at := c.wall().Add(c.until(expires))
	if expires&inTicks == 0 {
		at = at.Round(time.Second)
	}
	return uint64(max(at.Unix(), 1))
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

// seconds returns a TTL in seconds, rounded up, and at most 2^30.
//
// Precondition: the TTL is not negative.
func seconds(ttl time.Duration) uint32 {
	return uint32(min((ttl+time.Second-1)/time.Second, 1<<30))
}

// fixed converts a second of the clock to Unix time, for another process; 0 stays 0. unfixed is its
// inverse.
func (c *clock) fixed(second uint32) uint32 {
	if second == 0 {
		return 0
	}
	return uint32(int64(second) - firstSecond + c.begin.Unix())
}

func (c *clock) unfixed(at uint32) uint32 {
	if at == 0 {
		return 0
	}
	return uint32(min(max(int64(at)-c.begin.Unix()+firstSecond, handled), math.MaxInt32))
}
