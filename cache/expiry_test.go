package cache

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/internal/test/await"
)

// TestExpiredLeave: OnEvict is told of each entry within a second of its end, whatever the TTLs are
// and however they change. Then the sweeps end.
func TestExpiredLeave(t *testing.T) {
	for name, ttl := range map[string]func(i int) time.Duration{
		"one TTL":      func(int) time.Duration { return 30 * time.Second },
		"many TTLs":    func(i int) time.Duration { return time.Duration(1+i*7919%300_000) * time.Millisecond },
		"large, small": func(i int) time.Duration { return []time.Duration{0, time.Second, time.Hour}[i%3] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				ends, stay := map[string]time.Time{}, map[string]bool{}
				c := New(newHeap(t), &Options{MaxBytes: 4 << 20, OnEvict: func(key []byte, _ Entry, why Reason) {
					mu.Lock()
					defer mu.Unlock()
					if d := time.Since(ends[string(key)]); why != Expired || d < 0 || d >= time.Second {
						t.Errorf("%s left (%v) %v after its end", key, why, d)
					}
					delete(ends, string(key))
				}})
				for i := range 3000 {
					key := fmt.Append(nil, i)
					expect := func(ttl time.Duration) {
						mu.Lock()
						defer mu.Unlock()
						delete(ends, string(key))
						delete(stay, string(key))
						switch {
						case ttl > 0:
							ends[string(key)] = time.Now().Add(ttl)
						case ttl == 0:
							stay[string(key)] = true
						}
					}
					must(0, c.SetTTL(key, make([]byte, i%1000), ttl(i)))
					expect(ttl(i))
					switch {
					case i%7 == 0:
						c.Touch(key, ttl(i+1))
						expect(ttl(i + 1))
					case i%11 == 0:
						c.Delete(key)
						expect(-1)
					}
					time.Sleep(time.Millisecond)
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if c.check(); len(ends) > 0 || c.Len() != len(stay) {
					t.Errorf("%d entries have not left, and %d of %d stay", len(ends), c.Len(), len(stay))
				}
				if at := c.sweeper.at.Load(); at != 0 {
					t.Errorf("a sweep is to come, at %d", at)
				}
				c.Close()
			})
		})
	}
}

// TestSlidingEntriesStay: a sweep drops no entry whose TTL a read has restarted, and drops it at
// its new end. That may be sooner than its own TTL says.
func TestSlidingEntriesStay(t *testing.T) {
	for _, ttl := range []time.Duration{10 * time.Second, time.Hour} {
		c := newCache(t, Options{TTL: 10 * time.Second, Sliding: true})
		clock := c.fake()
		key := []byte("k")
		must(0, c.SetTTL(key, nil, ttl))
		for range 30 {
			if _, ok := c.Get(nil, key); !ok {
				t.Fatalf("it is gone at %v", clock.now)
			}
			clock.now += 9 * time.Second
			c.sweep()
			c.check()
		}
		clock.now += time.Second
		if c.sweep(); c.Len() != 0 {
			t.Error("it stays")
		}
	}
}

// TestMemoryOfGarbage: when most entries are deleted or have expired, the cache gives their memory
// back within a minute, without another call, and drops no other entry.
func TestMemoryOfGarbage(t *testing.T) {
	const bound = 8 << 20
	deleted := func(c *Cache, _ *fakeTime, keys [][]byte) {
		for _, key := range keys {
			c.Delete(key)
		}
	}
	tests := map[string]struct {
		percent int // of the entries to go
		remove  func(c *Cache, clock *fakeTime, keys [][]byte)
	}{
		"deleted":  {90, deleted},
		"all":      {100, deleted},
		"expired":  {90, func(_ *Cache, clock *fakeTime, _ [][]byte) { clock.now += time.Hour }},
		"cleared":  {100, func(c *Cache, _ *fakeTime, _ [][]byte) { c.Clear() }},
		"replaced": {90, replaced},
	}
	for name, tt := range tests {
		for _, size := range []int{10, 1000} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				c := newCache(t, Options{MaxBytes: bound, OnEvict: func(_ []byte, _ Entry, why Reason) {
					if why != Expired {
						t.Errorf("an entry was dropped: %v", why)
					}
				}})
				clock := c.fake()
				r := rand.New(rand.NewPCG(1, 1))
				var gone [][]byte
				n := 0
				for ; c.Stats().Reserved < bound*8/10; n++ {
					key, ttl := fmt.Append(nil, n), 2*time.Hour
					if r.IntN(100) < tt.percent {
						gone, ttl = append(gone, key), time.Minute
					}
					must(0, c.SetTTL(key, make([]byte, size), ttl))
				}
				tt.remove(c, clock, gone)
				sweeps := 0
				for s := &c.shards[0]; s.woken || s.due != 0 && s.due <= c.clock.now(); sweeps++ {
					clock.now += time.Second
					c.sweep()
				}
				c.check()
				if st := c.Stats(); st.Reserved > bound*3/10 || sweeps > 60 || name != "replaced" && st.Len != n-len(gone) {
					t.Errorf("%d bytes after %d sweeps; %d of %d entries, of which %d went", st.Reserved, sweeps, st.Len, n, len(gone))
				}
			})
		}
	}
}

// TestSweepWithoutMemory: if there is no memory for copies, a sweep empties no segment, and drops
// nothing.
func TestSweepWithoutMemory(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	c.fake()
	s, n := &c.shards[0], 0
	for ; c.Stats().Evicted == 0; n++ {
		must(0, c.Set(fmt.Append(nil, n), make([]byte, 1000)))
	}
	for i := range n {
		if i%3 > 0 {
			c.Delete(fmt.Append(nil, i))
		}
	}
	for s.sealAll(true); len(s.spares) > 0; {
		s.releaseSpare()
	}
	before, limit := c.Stats(), s.limit
	s.limit = s.used
	c.sweep()
	s.limit = limit
	c.check()
	if after := c.Stats(); after.Len != before.Len || before.Dead < before.Live {
		t.Errorf("%+v, and before %+v", after, before)
	}
}

// TestSweepDuringAPass: while a call passes over the index, sweeps do not shrink it. A later sweep
// does.
func TestSweepDuringAPass(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	c.fake()
	s := &c.shards[0]
	s.growIndex(1 << 20)
	chunks := s.index.Chunks()
	s.passes = 1
	for range 10 {
		c.sweep()
	}
	if n := s.index.Chunks(); n != chunks || !s.woken {
		t.Errorf("%d chunks of %d, and a sweep is to come: %t", n, chunks, s.woken)
	}
	s.passes = 0
	for s.woken {
		c.sweep()
	}
	if n := s.index.Chunks(); n >= chunks {
		t.Errorf("%d chunks, before %d", n, chunks)
	}
	c.check()
}

// TestExpiryDuringItsSet: an entry may expire while a Set that replaces it makes room.
func TestExpiryDuringItsSet(t *testing.T) {
	c := newCache(t, Options{MaxBytes: MinBytes})
	clock := c.fake()
	clock.hook = func() { clock.now += time.Minute }
	fillers := 0
	for i := range 300 {
		clock.looks, clock.at = 0, 0
		key := fmt.Append(nil, i%100)
		must(0, c.SetTTL(key, nil, time.Second))
		for before := c.Stats().Evicted; c.Stats().Evicted == before; fillers++ {
			must(0, c.Set(fmt.Append(nil, "filler ", fillers), make([]byte, 1000)))
		}
		clock.looks, clock.at = 0, 1+i%5
		must(0, c.SetTTL(key, make([]byte, c.segmentBytes/5), time.Hour))
		c.check()
		if !c.Peek(key, func(Entry) {}) {
			t.Fatalf("an entry is gone when the clock moves at look %d", clock.at)
		}
	}
}

// replaced gives entries small values.
func replaced(c *Cache, clock *fakeTime, keys [][]byte) {
	for _, key := range keys {
		must(0, c.SetTTL(key, nil, time.Hour))
	}
	clock.now += 2 * time.Hour
}

// TestNoSweepKeepsACache: a cache that is dropped without Close is collected, although an entry is
// to expire.
func TestNoSweepKeepsACache(t *testing.T) {
	gone := make(chan bool)
	func() {
		c := New(newHeap(t), &Options{MaxBytes: MinBytes})
		must(0, c.SetTTL([]byte("k"), nil, time.Hour))
		runtime.AddCleanup(c, func(gone chan bool) { close(gone) }, gone)
	}()
	for {
		runtime.GC()
		select {
		case <-gone:
			return
		default:
		}
	}
}

// TestSweepsInBubbles: a cache that was used in a bubble of synctest may be used outside of it.
func TestSweepsInBubbles(t *testing.T) {
	c := newCache(t, Options{})
	synctest.Test(t, func(*testing.T) { must(0, c.SetTTL([]byte("in"), nil, time.Hour)) })
	for _, ttl := range []time.Duration{time.Minute, time.Second, time.Hour} {
		must(0, c.SetTTL([]byte("out"), nil, ttl))
		c.sweep()
	}
}

// TestSweepsAfterBubbles: a timer that a bubble did not let fire does not end the sweeps, whether the
// cache was made before the bubble or in it.
func TestSweepsAfterBubbles(t *testing.T) {
	for _, inside := range []time.Duration{-time.Hour, time.Second} {
		c := newCache(t, Options{})
		now := inside
		c.clock.coarse.Store(exact)
		c.clock.since = func(time.Time) time.Duration { return now }
		synctest.Test(t, func(*testing.T) { must(0, c.SetTTL([]byte("in"), nil, time.Hour)) })
		lost := c.sweeper.at.Load()
		c.sweeper.sweeps.Lock() // the timers of this process wait until now is set
		now = 30 * time.Minute
		must(0, c.SetTTL([]byte("out"), nil, time.Hour))
		at := c.sweeper.at.Load()
		if at == lost {
			t.Errorf("bubble at %v: no timer is set", inside)
		}
		now += 2 * time.Hour
		c.sweeper.sweeps.Unlock()
		if c.sweeper.run(c, at); c.Len() != 0 {
			t.Errorf("bubble at %v: %d entries stay", inside, c.Len())
		}
	}
}

// TestCloseDuringASweep: Close waits for a sweep that is under way, and later ones do nothing.
func TestCloseDuringASweep(t *testing.T) {
	c := New(newHeap(t), &Options{MaxBytes: MinBytes})
	must(0, c.SetTTL([]byte("k"), nil, time.Hour))
	inside, leave, closed := make(chan bool), make(chan bool), make(chan bool, 1)
	c.sweeper.sweep = func(*Cache) {
		close(inside) // panics if it is called twice
		<-leave
	}
	at := c.sweeper.at.Load()
	go c.sweeper.run(c, at)
	<-inside
	go func() {
		c.Close()
		closed <- true
	}()
	if !await.Lock("stop", closed) {
		t.Error("Close did not wait")
	}
	close(leave)
	<-closed
	c.sweeper.wake(at)
	c.sweeper.run(c, at)
	if c.sweeper.at.Load() != 0 {
		t.Error("sweeps go on")
	}
}

// TestClasses: the TTL that ends each class is in it.
func TestClasses(t *testing.T) {
	for seconds, want := range map[uint32]int{0: 0, 1: 1, 16: 1, 17: 2, 64: 2, 65: 3, 256: 3, 257: 4, 1 << 30: 4} {
		if got := classOf(seconds); got != want {
			t.Errorf("%d s: class %d, want %d", seconds, got, want)
		}
	}
}

// TestExpiredSegmentsAreSpare: a sealed segment whose items have all expired can be used again.
func TestExpiredSegmentsAreSpare(t *testing.T) {
	c := newCache(t, Options{})
	s := &c.shards[0]
	for i := range 100 {
		must(0, c.SetTTL(fmt.Append(nil, i), make([]byte, 100), time.Minute))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.spares)
	s.expire(s.c.clock.now()+100, math.MaxInt)
	s.segs.each(func(n uint32, g *segment) {
		if g.state == sealed {
			t.Errorf("segment %d has %d bytes, and is sealed", n, g.live)
		}
	})
	if len(s.spares) == before {
		t.Error("no segment is spare")
	}
}

// TestCopiesKeepTheirClass: a copy of an item shares its segment with items of its TTL.
func TestCopiesKeepTheirClass(t *testing.T) {
	c := newCache(t, Options{})
	s := &c.shards[0]
	for _, ttl := range []time.Duration{0, 10 * time.Second, time.Hour} {
		key := []byte(ttl.String())
		must(0, c.SetTTL(key, nil, ttl))
		s.mu.Lock()
		s.sealAll(true)
		n, _ := s.segs.split(s.scan(c.seed.Bytes(key), key, true).w.place())
		s.evacuate(n, rule{}, Room)
		to, _ := s.segs.split(s.scan(c.seed.Bytes(key), key, true).w.place())
		if got, want := s.segs.at(to).class, classFor(seconds(ttl), false); to == n || got != want {
			t.Errorf("%v: moved from segment %d to %d of class %d, want class %d", ttl, n, to, got, want)
		}
		s.mu.Unlock()
	}
}
