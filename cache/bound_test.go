package cache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/internal/panics"
)

// fill sets entries of 1,000 bytes until the cache has dropped some.
func fill(t testing.TB, c *Cache) {
	for i := 0; c.Stats().Evicted == 0; i++ {
		must(0, c.Set(fmt.Append(nil, "fill ", i), make([]byte, 1000)))
	}
}

// TestResize: the bound holds when Resize returns. Read entries stay if there is room.
func TestResize(t *testing.T) {
	const size = 8 << 20
	c := newCache(t, Options{MaxBytes: size})
	fill(t, c)
	for _, n := range []int{size / 2, size / 8, size, 2 * size} {
		c.Resize(n)
		c.check()
		if st := c.Stats(); st.MaxBytes != n || st.Reserved > n {
			t.Errorf("%+v", st)
		}
		for i := range n / 1500 {
			must(0, c.Set(fmt.Append(nil, n, i), make([]byte, 1000)))
		}
		if st := c.Stats(); st.Reserved < n*3/4 {
			t.Errorf("it does not use its %d bytes: %+v", n, st)
		}
	}
}

// TestResizeKeepsWhatFits: Resize returns memory without entries first.
func TestResizeKeepsWhatFits(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 8 << 20})
	for i := range 6000 {
		must(0, c.Set(fmt.Append(nil, i), make([]byte, 1000)))
	}
	for i := range 4000 {
		c.Delete(fmt.Append(nil, i))
	}
	c.Resize(4 << 20)
	if st := c.Stats(); st.Len != 2000 || st.Shrunk != 0 {
		t.Errorf("%d entries are left of 2000, and %d were dropped", st.Len, st.Shrunk)
	}
	c.check()
}

// TestResizeFromMostToLeast: a cache shrinks from eight times its first bound to an eighth of it,
// with entries of any size. Index and pages shrink too. Pressure does not lower the bound further.
func TestResizeFromMostToLeast(t *testing.T) {
	for made := MinBytes; made <= 4<<20; made *= 4 {
		c := newShared(t, Options{MaxBytes: made})
		least := max(made/resizeShare, MinBytes)
		for _, n := range []int{made * resizeShare, least} {
			before := c.Stats()
			if c.Resize(n); c.Stats().Evicted != before.Evicted || n < before.Live && c.Stats().Shrunk == before.Shrunk {
				t.Errorf("made with %d: %+v, of %+v", made, c.Stats(), before)
			}
			if s := &c.shards[0]; s.segs.pages.Len()*pageBytes > s.limit/pagesShare {
				t.Errorf("made with %d: %d pages of a limit of %d", made, s.segs.pages.Len(), s.limit)
			}
			for i := range 2 * n / 4000 {
				must(0, c.Set(fmt.Append(nil, i), make([]byte, 4000)))
			}
		}
		c.bound.press(budget.Pressure{Level: budget.Hard, Wanted: 1 << 40})
		for i := range 1000 {
			must(0, c.Set(fmt.Append(nil, i), make([]byte, i*7919%(c.MaxEntry()-10))))
		}
		if st := c.Stats(); st.Reserved > least || st.MaxBytes != least {
			t.Errorf("made with %d: %+v", made, st)
		}
		for _, n := range []int{least - 1, made*resizeShare + resizeShare} {
			if panics.Of(func() { c.Resize(n) }) == "" {
				t.Errorf("made with %d it takes %d", made, n)
			}
		}
	}
}

// TestHeldWhileShrinking: a later write returns the memory that a reader has held. Meanwhile no
// pressure of a budget changes the bound.
func TestHeldWhileShrinking(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	must(0, c.Set([]byte("held"), make([]byte, 1<<19)))
	c.View([]byte("held"), func(e Entry) {
		fill(t, c)
		c.Resize(1 << 19)
		c.check()
		for _, level := range []budget.Level{budget.Calm, budget.Soft} {
			c.bound.press(budget.Pressure{Level: level})
			if st := c.Stats(); st.Reserved < len(e.Value) || st.MaxBytes != 1<<19 {
				t.Errorf("%v: %+v", level, st)
			}
		}
	})
	must(0, c.Set([]byte("k"), make([]byte, 5000)))
	for i := range 10 {
		must(0, c.Set(fmt.Append(nil, i), make([]byte, 5000)))
	}
	if st := c.Stats(); st.Reserved > st.MaxBytes {
		t.Errorf("%+v", st)
	}
	c.check()
}

// TestBoundWhileShrinking: while Resize drops entries of a shard that has borrowed bytes, the shard
// that has lent them does not use them.
func TestBoundWhileShrinking(t *testing.T) {
	const size = 9 << 20 // of two shards
	var c *Cache
	fill := func(shard uint32) {
		for i := range size / 1000 {
			if key := fmt.Append(nil, i); c.shardOf(c.seed.Bytes(key)) == &c.shards[shard] {
				must(0, c.Set(key, make([]byte, 1000)))
			}
		}
	}
	most := 0
	c = newShared(t, Options{MaxBytes: size, OnEvict: func(_ []byte, _ Entry, why Reason) {
		if why == Shrunk && most == 0 { // under the lock of shard 1
			together(1, func(int) { fill(0) })
			most = c.shards[0].used + c.shards[1].used
		}
	}})
	fill(1)
	for i := 0; c.shards[1].limit <= c.shards[1].share; i++ {
		if key := fmt.Append(nil, i); c.shardOf(c.seed.Bytes(key)) == &c.shards[1] {
			must(0, c.Set(key, make([]byte, c.MaxEntry()-len(key))))
		}
	}
	c.Resize(size - 1<<10)
	c.check()
	if most == 0 || most > size {
		t.Errorf("%d bytes of %d during Resize", most, size)
	}
}

// TestBoundWhileHeld: after a Resize, shards do not use bytes that they have lent for an entry that a
// reader holds. They do once the reader has left.
func TestBoundWhileHeld(t *testing.T) {
	c := newShared(t, Options{MaxBytes: 17 << 20})
	huge := []byte("huge")
	fill := func() (used int) {
		for i := range 40_000 {
			c.Set(fmt.Append(nil, i), make([]byte, 1000)) // the shard of the held entry has no room
		}
		for i := range c.shards {
			used += c.shards[i].used
		}
		return used
	}
	must(0, c.Set(huge, make([]byte, c.MaxEntry()-len(huge))))
	c.View(huge, func(Entry) {
		c.Resize(16 << 20)
		c.check()
		if used := fill(); used > 16<<20 {
			t.Errorf("%d bytes of %d while a reader holds an entry", used, 16<<20)
		}
	})
	if used := fill(); used < 15<<20 || used > 16<<20 {
		t.Errorf("%d bytes of %d after that", used, 16<<20)
	}
	c.check()
}

// TestPressure: the cache shrinks by the wanted bytes, to a quarter at least, and grows back.
func TestPressure(t *testing.T) {
	const size = 4 << 20
	c := newCache(t, Options{MaxBytes: size})
	fill(t, c)
	full := c.Stats().Reserved
	for _, step := range []struct {
		p        budget.Pressure
		maxBytes int
	}{
		{budget.Pressure{Level: budget.Soft, Wanted: 1 << 20}, full - 1<<20},
		{budget.Pressure{Level: budget.Hard, Wanted: 1 << 30}, size / pressedShare},
		{budget.Pressure{Level: budget.Soft, Wanted: 0}, size / pressedShare},
		{budget.Pressure{Level: budget.Calm}, size},
	} {
		c.bound.press(step.p)
		if st := c.Stats(); st.MaxBytes > step.maxBytes || st.MaxBytes < step.maxBytes*9/10 || st.Reserved > st.MaxBytes || st.Shrunk == 0 {
			t.Errorf("at %v: %+v; want a bound of %d", step.p, st, step.maxBytes)
		}
		c.check()
	}
}

// TestBudget: a budget smaller than the process's memory shrinks the cache. Close unregisters the
// cache.
func TestBudget(t *testing.T) {
	b := freehold.Must(budget.Start(&budget.Options{Limit: 8 << 20}))
	defer b.Stop()
	c := New(newHeap(t), &Options{MaxBytes: 4 << 20, Budget: b})
	for c.Stats().MaxBytes == 4<<20 {
		time.Sleep(time.Millisecond)
	}
	c.Close()
	before := c.Stats().MaxBytes
	c.bound.press(budget.Pressure{Level: budget.Calm})
	if n := c.Stats().MaxBytes; n != before {
		t.Errorf("a closed cache goes from %d to %d", before, n)
	}
}

// A zeroHooked allocator calls before first in Zeroed.
type zeroHooked struct {
	freehold.Allocator
	before func()
}

func (p zeroHooked) Zeroed(size, align int) ([]byte, error) {
	p.before()
	return p.Allocator.Zeroed(size, align)
}

// TestBudgetWhileDiskOpens: the budget first calls a cache when its disk tier is open. The race
// detector sees a call before.
func TestBudgetWhileDiskOpens(t *testing.T) {
	b := freehold.Must(budget.Start(&budget.Options{Limit: 8 << 20}))
	defer b.Stop()
	called := make(chan struct{}, 1)
	const last = 1 // so the cache is called before
	defer b.OnPressure(last, func(context.Context, budget.Pressure) {
		select {
		case called <- struct{}{}:
		default:
		}
	})()
	<-called
	var once sync.Once
	p := zeroHooked{newHeap(t), func() {
		once.Do(func() {
			<-called
			<-called // a whole round since
		})
	}}
	c := New(p, &Options{MaxBytes: 4 << 20, Budget: b, Disk: &Disk{Dir: t.TempDir(), MaxBytes: 8 << 20}})
	defer c.Close()
	if err := c.Stats().Disk.Off; err != nil {
		t.Error(err)
	}
}

// TestBoundOfWhatIsRead: while readers hold all entries, Set fails at the bound. The bound may be
// anywhere between two segments or two pages.
func TestBoundOfWhatIsRead(t *testing.T) {
	for size := MinBytes; size < MinBytes+48<<10; size += 1 << 10 {
		c := newCache(t, Options{MaxBytes: size})
		var held []pinned
		for i := 0; ; i++ {
			key := fmt.Append(nil, i)
			err := c.Set(key, make([]byte, 900))
			if st := c.Stats(); st.Reserved > size {
				t.Fatalf("%d bytes of %d, with %d entries that are read: %v", st.Reserved, size, len(held), err)
			}
			if err != nil {
				break
			}
			h := c.seed.Bytes(key)
			held = append(held, c.shardOf(h).find(h, key))
		}
		for _, r := range held {
			c.shards[0].unpin(r)
		}
		must(0, c.Set([]byte("k"), make([]byte, 900)))
	}
}

// TestSmallQueueWhileMainIsRead: while readers hold the whole main queue, the small queue is
// evicted, even if it is small.
func TestSmallQueueWhileMainIsRead(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	for i := range 4000 {
		key := fmt.Append(nil, i)
		must(0, c.Set(key, make([]byte, 500)))
		c.Get(nil, key)
		c.Get(nil, key)
	}
	s := &c.shards[0]
	var held []pinned
	s.eachSlot(func(at *atomic.Uint64, w slot) {
		if w.main() {
			held = append(held, s.hold(at))
		}
	})
	for s.reclaim(0, Room) {
	}
	if v := s.victims(); v.small != 0 || v.mainBytes == 0 {
		t.Errorf("%d bytes are left in the small queue, beside %d in main", v.smallBytes, v.mainBytes)
	}
	for _, r := range held {
		c.shards[0].unpin(r)
	}
	c.check()
}

// TestLendsNoHeldMemory: a shard keeps as much of its limit as readers hold.
func TestLendsNoHeldMemory(t *testing.T) {
	c := newShared(t, Options{MaxBytes: 16 << 20})
	fill(t, c)
	s := &c.shards[0]
	var held []pinned
	s.eachSlot(func(at *atomic.Uint64, _ slot) { held = append(held, s.hold(at)) })
	lent := s.lend(s.limit, s.limit, true)
	if s.limit < s.used {
		t.Errorf("%d bytes are lent, and %d are used of the limit of %d", lent, s.used, s.limit)
	}
	c.bound.unlent.Add(int64(lent))
	for _, r := range held {
		s.unpin(r)
	}
	c.check()
}

// TestLendsWhatItFrees: a shard that evicts a large entry for few bytes lends its other bytes too.
func TestLendsWhatItFrees(t *testing.T) {
	c := New(newHeap(t), &Options{MaxBytes: 16 << 20})
	defer c.Close()
	s := &c.shards[len(c.shards)-1]
	for i := 0; c.Stats().Evicted < 100; i++ {
		must(0, c.Set(fmt.Append(nil, i), make([]byte, 700_000)))
	}
	const most = 600_000
	unused := s.lend(0, 16<<20, false)
	if got := s.lend(100_000, most, true); got != most {
		t.Errorf("%d bytes are lent, want %d", got, most)
	}
	c.bound.unlent.Add(int64(unused + most))
	c.check()
}
