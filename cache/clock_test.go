package cache

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/alloctest"
)

// lives returns the time from now until the entry of key expires. Then it sets the clock back.
func (f *fakeTime) lives(c *Cache, key []byte) (d time.Duration) {
	defer func(now time.Duration) { f.now = now }(f.now)
	for step := time.Second; step > 0; step /= 10 { // to the nanosecond
		for f.now += step; c.Peek(key, func(Entry) {}); f.now += step {
			d += step
		}
		f.now -= step
	}
	return d + 1
}

// TestTTLs: an entry lives for its TTL, and less than a second or tick longer, whichever call sets
// the TTL. Entry.TTL is the time left, rounded down.
func TestTTLs(t *testing.T) {
	const tick = time.Second/1024 + 1
	key := []byte("k")
	update := func(c *Cache, ttl time.Duration, change Change) {
		must(c.Update(key, func(e *Entry, _ bool) Change {
			e.TTL = ttl
			return change
		}))
	}
	calls := map[string]func(c *Cache, ttl time.Duration){
		"SetTTL":          func(c *Cache, ttl time.Duration) { must(0, c.SetTTL(key, nil, ttl)) },
		"Put":             func(c *Cache, ttl time.Duration) { must(c.Put(key, Entry{Value: make([]byte, 99), TTL: ttl})) },
		"Replace":         func(c *Cache, ttl time.Duration) { must(c.Replace(key, Entry{TTL: ttl})) },
		"CompareAndSet":   func(c *Cache, ttl time.Duration) { must(c.CompareAndSet(key, c.versionOf(key), Entry{TTL: ttl})) },
		"Touch":           func(c *Cache, ttl time.Duration) { c.Touch(key, ttl) },
		"Update to Touch": func(c *Cache, ttl time.Duration) { update(c, ttl, Touch) },
		"Update to Store": func(c *Cache, ttl time.Duration) { update(c, ttl, Store) },
	}
	for name, call := range calls {
		for phase := time.Duration(0); phase < 3*time.Second; phase += 70 * time.Millisecond {
			for ttl, unit := range map[time.Duration]time.Duration{
				1: time.Second, 2: tick, 10 * time.Millisecond: tick, 500 * time.Millisecond: tick, time.Second: time.Second,
				2 * time.Second: time.Second, 2500 * time.Millisecond: tick, 60_500 * time.Millisecond: time.Second,
			} {
				c := newCache(t, Options{})
				clock := c.fake()
				clock.now = 130*time.Millisecond + phase*1_000_000 // up to 34 days, in which ticks begin again
				must(0, c.SetTTL(key, nil, 3*time.Second))
				clock.now += phase
				call(c, ttl)
				got := clock.lives(c, key)
				if got < ttl || got >= ttl+unit {
					t.Fatalf("%s of %v, %v after an entry of 3 s: it lives %v", name, ttl, phase, got)
				}
				c.Peek(key, func(e Entry) {
					if e.TTL <= 0 || e.TTL > max(got, 2) || e.TTL <= got-unit && e.TTL != 1 {
						t.Fatalf("%s of %v: it tells %v, and lives %v", name, ttl, e.TTL, got)
					}
				})
			}
		}
	}
}

// TestTicksInSnapshots: a restored entry does not outlive the one whose TTL was kept in ticks.
func TestTicksInSnapshots(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	key := []byte("k")
	must(0, c.SetTTL(key, nil, 2700*time.Millisecond))
	var b bytes.Buffer
	must(0, c.Snapshot(&b))
	c.Clear()
	must(0, c.Restore(&b))
	if got := clock.lives(c, key); got != 2*time.Second {
		t.Errorf("it lives %v", got)
	}
}

// TestCopiesGainNoTime: storing an entry with its Entry.TTL does not change when it expires,
// however often it is stored.
func TestCopiesGainNoTime(t *testing.T) {
	key := []byte("k")
	for name, again := range map[string]func(c *Cache, key []byte){
		"Put": func(c *Cache, key []byte) {
			c.Peek(key, func(e Entry) { must(c.Put(key, Entry{Value: []byte("v"), TTL: e.TTL})) })
		},
		"another cache": func(c *Cache, key []byte) {
			other := New(c.base.Parent, &Options{MaxBytes: MinBytes})
			defer other.Close()
			other.clock = c.clock
			c.Peek(key, func(e Entry) { must(other.Put(key, e)) })
			other.Peek(key, func(e Entry) { must(c.Put(key, e)) })
		},
		"Update": func(c *Cache, key []byte) {
			must(c.Update(key, func(e *Entry, found bool) Change {
				if e.Value = []byte("w"); !found {
					return Keep
				}
				return Store
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, Options{})
			clock := c.fake()
			clock.now = 630 * time.Millisecond
			must(0, c.SetTTL(key, nil, 5*time.Second))
			n := 0
			for ; c.Peek(key, func(Entry) {}) && n < 100; n++ {
				again(c, key)
				clock.now += 90 * time.Millisecond
			}
			if clock.now < 6*time.Second || clock.now > 6100*time.Millisecond { // 5.63 s, rounded up
				t.Errorf("it lived until %v, stored %d times", clock.now, n)
			}
		})
	}
}

// TestClocksTickTogether: the clocks of all caches change at full seconds of the system's clock.
func TestClocksTickTogether(t *testing.T) {
	for range 3 {
		c := clockOf(0)
		if c.begin.Nanosecond() != 0 || c.since(c.begin) < 0 || c.since(c.begin) > time.Since(c.begin) || c.now() < 1 {
			t.Errorf("it begins at %v", c.begin)
		}
	}
}

// TestFarExpiries: Unix times in the far future do not overflow.
func TestFarExpiries(t *testing.T) {
	c := newCache(t, Options{})
	c.fake().now = time.Hour
	for _, at := range []uint64{1 << 40, 1 << 62, 1 << 63, 1<<64 - 1} {
		if expires, ok := c.clock.fromUnix(at); !ok || expires != math.MaxInt32 {
			t.Errorf("%d is second %d: %t", at, expires, ok)
		}
	}
}

// TestUnixTimes: unix and fromUnix are inverse, even if the system's clock was adjusted by less
// than a second. An expiry before 1970 does not become 0, which is never.
func TestUnixTimes(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	clock.now = 10 * time.Second
	begin := c.clock.begin
	for _, set := range []time.Duration{-400 * time.Millisecond, 0, 400 * time.Millisecond} {
		c.clock.wall = func() time.Time { return begin.Add(clock.now + set) }
		for expires := range uint32(100) {
			got, hasTime := c.clock.fromUnix(c.clock.unix(expires))
			if want := expires == 0 || c.clock.until(expires) > set; got != expires || hasTime != want {
				t.Errorf("second %d has become %d, with time left: %t, want %t", expires, got, hasTime, want)
			}
		}
	}
	c.clock.wall = func() time.Time { return time.Unix(-1000, 0) }
	if at := c.clock.unix(20); at != 1 {
		t.Errorf("an expiry before 1970 is %d", at)
	}
}

// TestLeft: left is negative from the moment of expiry on.
func TestLeft(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	for _, tt := range []struct{ now, want time.Duration }{
		{0, 9 * time.Second}, {1, 8 * time.Second}, {8 * time.Second, time.Second}, {8*time.Second + 1, 1},
		{9*time.Second - 1, 1}, {9 * time.Second, -1}, {9*time.Second + 1, -1}, {time.Hour, -1},
	} {
		clock.now = tt.now
		if got := c.clock.left(firstSecond + 9); got != tt.want {
			t.Errorf("at %v it has %v left, want %v", tt.now, got, tt.want)
		}
	}
}

// TestCoarseSeconds: now is the second of the system's clock, however long its callers stop between
// two steps, if timers fire at most a few milliseconds late. It looks at that clock once a second,
// and in each margin.
func TestCoarseSeconds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var (
		f      fakeTime
		timers []func()
		due    []time.Duration
	)
	fire := func(late time.Duration) {
		for len(timers) > 0 && due[0]+late <= f.now {
			timer := timers[0]
			timers, due = timers[1:], due[1:]
			timer()
		}
	}
	pass := func(d time.Duration) { // a timer is late only by a part of that time
		for end := f.now + d; f.now < end; fire(margin / 2) {
			f.now = min(f.now+margin/8, end)
		}
	}
	c := clockOf(0)
	looks := 0
	c.since = func(time.Time) time.Duration {
		looks++
		now := f.now
		if r.IntN(4) == 0 {
			pass(time.Duration(r.Int64N(int64(3 * time.Second))))
		}
		return now
	}
	c.after = func(d time.Duration, timer func()) {
		timers, due = append(timers, timer), append(due, f.now+d)
		if r.IntN(4) == 0 {
			pass(time.Duration(r.Int64N(int64(3 * time.Second))))
		}
	}
	const calls = 50_000
	for range calls {
		before := secondAt(f.now)
		if s := c.now(); s < before || s > secondAt(f.now) {
			t.Fatalf("at %v, from second %d on, it is second %d", f.now, before, s)
		}
		pass(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
	}
	if looks > calls/2 {
		t.Errorf("%d looks in %d calls", looks, calls)
	}
}

// TestBubbles: a cache that is made in a bubble of testing/synctest may be used in other bubbles
// and outside. In a bubble entries expire at the moment at which their second begins.
func TestBubbles(t *testing.T) {
	parent := alloctest.New(t)
	var c *Cache
	key := []byte("k")
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			if c == nil {
				c = New(parent, &Options{MaxBytes: MinBytes})
			}
			for ttl := time.Second; ttl < 5*time.Second; ttl += time.Second {
				must(0, c.SetTTL(key, key, ttl))
				for range ttl / time.Second {
					get(t, c, "k", "k")
					time.Sleep(time.Second)
				}
				get(t, c, "k", "")
			}
			must(0, c.SetTTL(key, key, time.Second))
			get(t, c, "k", "k")
		})
	}
	get(t, c, "k", "")
	c.Close()
}

// TestBubblesLeaveNoSecond: a call from a bubble does not change the coarse second of a clock that
// was made outside.
func TestBubblesLeaveNoSecond(t *testing.T) {
	c := clockOf(0)
	synctest.Test(t, func(*testing.T) { c.now() })
	if s := c.coarse.Load(); s != 0 {
		t.Errorf("second %d", s)
	}
}
