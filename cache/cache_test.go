package cache

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/internal/test/await"
)

func newCache(t testing.TB, o Options) *Cache {
	if o.MaxBytes == 0 {
		o.MaxBytes = MinBytes
	}
	c := New(alloctest.New(t), &o)
	t.Cleanup(c.Close)
	return c
}

func get(t testing.TB, c *Cache, key, want string) {
	t.Helper()
	if got, ok := c.Get(nil, []byte(key)); string(got) != want || ok != (want != "") {
		t.Fatalf("Get(%q) = %q, %t; want %q", key, got, ok, want)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestConditions: each call stores or does not, by what the key has.
func TestConditions(t *testing.T) {
	c := newCache(t, Options{})
	k := []byte("k")
	entry := func(v string) Entry { return Entry{Value: []byte(v)} }
	if must(c.Replace(k, entry("a"))) || !must(c.Add(k, entry("b"))) || must(c.Add(k, entry("c"))) {
		t.Fatal("Replace of none, Add of none and Add of one = true, false, true")
	}
	get(t, c, "k", "b")
	if !must(c.Replace(k, entry("d"))) {
		t.Fatal("Replace = false")
	}
	var seen Entry
	c.View(k, func(e Entry) { seen = e })
	version := must(c.Put(k, Entry{Value: []byte("e"), Flags: 1 << 40}))
	if must(c.CompareAndSet(k, seen.Version, entry("f"))) || !must(c.CompareAndSet(k, version, entry("g"))) {
		t.Fatal("CompareAndSet of an old and of the current version = true, false")
	}
	get(t, c, "k", "g")
	version = must(c.Update(k, func(e *Entry, found bool) Change {
		e.Value, e.Flags = append(append([]byte{}, e.Value...), "hi"...), 7
		return Store
	}))
	c.View(k, func(e Entry) {
		if string(e.Value) != "ghi" || e.Flags != 7 || e.Version != version || e.TTL != 0 {
			t.Errorf("View after Update: %+v, want version %d", e, version)
		}
	})
	if !c.Delete(k) || c.Delete(k) {
		t.Fatal("Delete, twice = false, true")
	}
	get(t, c, "k", "")
}

// TestTooLarge: a Set that fails leaves no stale value, a conditional call leaves the old one.
func TestTooLarge(t *testing.T) {
	c := newCache(t, Options{})
	k, large := []byte("k"), make([]byte, c.MaxEntry())
	must(0, c.Set(k, []byte("v")))
	if _, err := c.Replace(k, Entry{Value: large}); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("Replace of too many bytes: %v", err)
	}
	get(t, c, "k", "v")
	if err := c.Set(k, large); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("Set of too many bytes: %v", err)
	}
	get(t, c, "k", "")
	must(0, c.Set(k, large[:c.MaxEntry()-1]))
}

// TestLargestEntry: with 4 MiB and more an entry of 1 MiB has room, however many processors there are.
func TestLargestEntry(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 4, 64} {
		runtime.GOMAXPROCS(procs)
		for _, bytes := range []int{4 << 20, 64 << 20, 100 << 20} {
			c := newCache(t, Options{MaxBytes: bytes})
			if n := c.MaxEntry(); n < 1<<20 {
				t.Errorf("%d processors: %d bytes of %d", procs, n, bytes)
			}
			for i := range 3 {
				key := fmt.Append(nil, i)
				must(0, c.Set(key, make([]byte, c.MaxEntry()-len(key))))
			}
			c.check()
		}
	}
}

func TestNegativeTTL(t *testing.T) {
	c := newCache(t, Options{})
	must(0, c.Set([]byte("k"), []byte("v")))
	must(0, c.SetTTL([]byte("k"), []byte("w"), -time.Second))
	get(t, c, "k", "")
}

// An entry that is updated again and again expires when it would have, unless it is given another TTL.
func TestUpdateKeepsTheExpiry(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	update := func(ttl time.Duration) {
		must(c.Update([]byte("k"), func(e *Entry, found bool) Change {
			if !found {
				t.Error("the entry has expired")
			}
			if e.Value = []byte("w"); ttl != 0 {
				e.TTL = ttl
			}
			return Store
		}))
	}
	must(0, c.SetTTL([]byte("k"), []byte("v"), 10*time.Second))
	for range 9 {
		clock.now += 1100 * time.Millisecond
		update(0)
	}
	clock.now += 2 * time.Second
	get(t, c, "k", "")

	must(0, c.SetTTL([]byte("k"), []byte("v"), 10*time.Second))
	update(20 * time.Second)
	clock.now += 15 * time.Second
	get(t, c, "k", "w")
}

// A hooked parent calls a hook, once, before it takes back a segment.
type hooked struct {
	freehold.Allocator
	hook func()
}

func (p *hooked) Free(b []byte) {
	if hook := p.hook; hook != nil && len(b) >= leastSegmentBytes {
		p.hook = nil
		hook()
	}
	p.Allocator.Free(b)
}

// TestStatsDuringClose: figures wait for a shard whose memory is on its way back.
func TestStatsDuringClose(t *testing.T) {
	p, done := &hooked{Allocator: newHeap(t)}, make(chan bool, 1)
	c := New(p, &Options{MaxBytes: MinBytes})
	must(0, c.Set([]byte("k"), []byte("v")))
	p.hook = func() {
		go func() {
			c.Stats()
			done <- true
		}()
		if !await.Lock("addTo", done) {
			t.Error("Stats looks at memory that Close gives back")
		}
	}
	c.Close()
	<-done
}

// TestCloseUnderPressure: Close waits for a shard that a budget has shrink.
func TestCloseUnderPressure(t *testing.T) {
	done := make(chan bool, 1)
	var c *Cache
	var once sync.Once
	c = New(newHeap(t), &Options{MaxBytes: 2 * MinBytes, OnEvict: func([]byte, Entry, Reason) {
		once.Do(func() {
			go func() {
				c.Close()
				done <- true
			}()
			if !await.Lock("Close", done) {
				t.Error("it is closed while it shrinks")
			}
		})
	}})
	for i := range 300 {
		must(0, c.Set(fmt.Append(nil, i), make([]byte, 1000)))
	}
	c.bound.press(budget.Pressure{Level: budget.Hard, Wanted: 1 << 30})
	<-done
}

// A rounded parent has blocks of multiples of a page, with red zones.
type rounded struct {
	freehold.Allocator
	page, zones int
}

func (p rounded) GoodSize(n int) int { return roundUp(n+p.zones, p.page) }

// TestSegmentsOfTheParent: segments are as small as the parent's pages let them be, and with red zones as
// small as without.
func TestSegmentsOfTheParent(t *testing.T) {
	for _, tt := range []struct{ page, zones, want int }{
		{16, 0, leastSegmentBytes}, {4 << 10, 0, leastSegmentBytes}, {16 << 10, 0, 16 << 10},
		{16, 32, leastSegmentBytes}, {4 << 10, 32, leastSegmentBytes},
	} {
		c := New(rounded{alloctest.New(t), tt.page, tt.zones}, &Options{MaxBytes: MinBytes})
		defer c.Close()
		must(0, c.Set([]byte("k"), make([]byte, 10_000)))
		if c.segmentBytes != tt.want {
			t.Errorf("segments of %d, want %d, with pages of %d and red zones of %d", c.segmentBytes, tt.want, tt.page, tt.zones)
		}
	}
}
