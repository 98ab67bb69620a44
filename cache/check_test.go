package cache

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// check verifies the invariants of all shards, and panics if one is violated. No other call may be
// under way.
func (c *Cache) check() {
	limits := int(c.bound.unlent.Load())
	for i := range c.shards {
		c.shards[i].check()
		limits += c.shards[i].limit
	}
	most := int(c.bound.now.Load())/len(c.shards) - c.ownBytes()
	demand(limits == most*len(c.shards), "the shards have %d of %d", limits, most*len(c.shards))
}

func demand(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(format, args...))
	}
}

func (s *shard) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := map[uint32]uint32{}
	places := map[place]bool{}
	demand(s.floor <= s.top(), "floor %d is above the last position, %d", s.floor, s.top())
	s.eachSlot(func(at *atomic.Uint64, w slot) {
		demand(!places[w.place()], "two slots of one place")
		places[w.place()] = true
		n, offset := s.segs.split(w.place())
		g := s.segs.at(n)
		it := g.item(offset)
		demand(g.state == open || g.state == sealed, "a slot into a segment in state %d", g.state)
		demand(offset+uint32(it.size()) <= g.used, "an item beyond %d used bytes", g.used)
		demand(tagOf(s.c.seed.Bytes(it.key())) == w.tag(), "an item of another key")
		demand(g.main == w.main(), "a slot of another queue than its segment")
		demand(s.version(w, it) <= s.top(), "version %d, and the last position is %d", s.version(w, it), s.top())
		live[n] += uint32(it.live())
		due, first := g.due[g.partOf(offset)], g.first[g.partOf(offset)]
		demand(first != 0 && first <= offset+1, "an item at %d, before the first of its part, %d", offset, first)
		if expires := s.c.clock.secondOf(it.expires.Load()); expires != 0 {
			demand(due != 0 && due <= expires && s.due != 0 && s.due <= due,
				"an item expires at %d, its part at %d, and its shard at %d", expires, due, s.due)
		}
	})
	s.index.Check()
	used := s.indexBytes() + s.segs.pages.Len()*pageBytes
	for i := 0; s.tier != nil && i < len(s.tier.parts); i++ {
		s.tier.parts[i].Check()
	}
	sumLive, sumUsed, states := 0, 0, map[state]int{}
	for _, n := range s.rests {
		if n != 0 {
			g := s.segs.at(n)
			demand(g.state == sealed && !g.alone && g.live > 0, "segment %d in state %d has a rest", n, g.state)
		}
	}
	s.segs.each(func(n uint32, g *segment) {
		used += int(g.bytes)
		states[g.state]++
		sumLive, sumUsed = sumLive+int(g.live), sumUsed+int(g.used)
		demand(g.live == live[n], "segment %d has %d live bytes, counted as %d", n, live[n], g.live)
		demand(g.used <= g.bytes, "segment %d: %d of %d bytes used", n, g.used, g.bytes)
	})
	demand(sumLive == s.live && sumUsed == s.filled, "%d live of %d used bytes, counted as %d of %d", sumLive, sumUsed, s.live, s.filled)
	demand(used == s.used, "%d bytes of the parent, counted as %d", used, s.used)
	spares := 0
	for _, n := range s.spares {
		spares += int(s.segs.at(n).bytes)
	}
	demand(spares == s.spare, "%d bytes of spares, counted as %d", spares, s.spare)
	demand(states[spare] == len(s.spares) && states[limbo] == len(s.limbo), "%v, but %d spares, %d in limbo",
		states, len(s.spares), len(s.limbo))
}

// eachSlot calls f with each slot that is not empty.
func (s *shard) eachSlot(f func(at *atomic.Uint64, w slot)) {
	for i := range s.index.Buckets() {
		b := s.index.Bucket(i)
		for j := range b.Slots {
			if w := slot(b.Slots[j].Load()); w != 0 {
				f(&b.Slots[j], w)
			}
		}
	}
}

// fakeTime is a clock that tests set. Its look number at calls hook. While a disk's writer runs,
// which looks at it too, tests set it by add.
type fakeTime struct {
	mu    sync.Mutex // held by add, and by looks
	now   time.Duration
	looks int
	at    int
	hook  func()
}

func (f *fakeTime) get() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeTime) add(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += d
}

// fake replaces the cache's clock by a fakeTime.
func (c *Cache) fake() *fakeTime {
	f := &fakeTime{}
	c.clock.coarse.Store(exact)
	c.clock.since = func(time.Time) time.Duration {
		if f.hook != nil {
			if f.looks++; f.looks == f.at {
				f.hook()
			}
		}
		return f.get()
	}
	begin := c.clock.begin
	c.clock.wall = func() time.Time { return begin.Add(f.get()) }
	c.sweeper.stop() // tests call sweep
	return f
}
