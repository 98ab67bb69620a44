package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/internal/hash"
	"github.com/freehold-go/freehold/internal/test/await"
	"github.com/freehold-go/freehold/internal/vm"
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

// TestConditions: each conditional call stores only if its condition holds.
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

// TestTooLarge: a failed Set deletes the old value. A failed Replace leaves it.
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

// TestSetFails: a Set that fails for lack of memory deletes the key's entry once, also if that made
// room for the new value.
func TestSetFails(t *testing.T) {
	for n := range 40 {
		for size := 10 << 10; size < 100<<10; size += 7 << 10 {
			c := New(alloctest.FailAfter(alloctest.New(t), n), &Options{MaxBytes: MinBytes})
			for i := range 6 {
				err := c.Set([]byte("k"), make([]byte, size+i*9000))
				if c.check(); c.Len() == 0 && err == nil || c.Len() == 1 && err != nil || c.Len() > 1 {
					t.Errorf("%d entries after %v", c.Len(), err)
				}
			}
			c.Close()
		}
	}
}

// TestLargestEntry: every call that stores can store an entry of half of the bound, as a new entry
// and in place of another. The number of shards does not matter. Once the entries are gone, the
// loans are returned.
func TestLargestEntry(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 4, 64} {
		runtime.GOMAXPROCS(procs)
		for _, bytes := range []int{MinBytes, 3 << 20, 8 << 20, 32 << 20} {
			parent := freehold.Pages()
			if procs == 1 {
				parent = newHeap(t)
			}
			testLargest(t, New(parent, &Options{MaxBytes: bytes}))
		}
	}
}

func testLargest(t *testing.T, c *Cache) {
	defer c.Close()
	most := c.MaxEntry()
	if most != c.options.MaxBytes/2 {
		t.Errorf("MaxEntry is %d of %d", most, c.options.MaxBytes)
	}
	filled := 0
	fillAll := func(size int) {
		for range c.options.MaxBytes / size {
			must(0, c.Set(fmt.Append(nil, "fill ", filled), make([]byte, size)))
			filled++
		}
	}
	small := max(c.options.MaxBytes/2048, 150)
	fillAll(small)
	value := func(key string, b byte) []byte {
		v := make([]byte, most-len(key))
		v[0], v[len(v)-1] = b, b
		return v
	}
	want := func(call, key string, b byte, err error) {
		t.Helper()
		v, ok := c.Get(nil, []byte(key))
		if err != nil || !ok || len(v) != most-len(key) || v[0] != b || v[len(v)-1] != b {
			t.Fatalf("%d bytes, %d shards: %s: %v; Get has %t with %d bytes", c.options.MaxBytes, len(c.shards), call, err, ok, len(v))
		}
		if st := c.Stats(); st.Reserved > st.MaxBytes {
			t.Fatalf("%s: %+v", call, st)
		}
		c.check()
	}
	for i := range 5 {
		key := fmt.Sprint(i)
		want("Set", key, 1, c.Set([]byte(key), value(key, 1)))
		want("Set again", key, 2, c.Set([]byte(key), value(key, 2)))
	}
	k := []byte("4")
	_, err := c.Replace(k, Entry{Value: value("4", 3)})
	want("Replace", "4", 3, err)
	version := uint64(0)
	c.Peek(k, func(e Entry) { version = e.Version })
	_, err = c.CompareAndSet(k, version, Entry{Value: value("4", 4)})
	want("CompareAndSet", "4", 4, err)
	_, err = c.Update(k, func(e *Entry, found bool) Change {
		if e.Value[0] != 4 {
			t.Errorf("Update has %d", e.Value[0])
		}
		e.Flags = 7 // and the value is the cache's memory
		return Store
	})
	want("Update", "4", 4, err)
	added, err := c.Add(k, Entry{Value: value("4", 5)})
	if want("Add", "4", 4, err); added {
		t.Error("Add has replaced it")
	}
	_, err = c.GetOrLoad(t.Context(), nil, []byte("5"), func(context.Context) (Entry, error) { return Entry{Value: value("5", 6)}, nil })
	want("GetOrLoad", "5", 6, err)
	err = c.Set([]byte("6"), make([]byte, most))
	if text := fmt.Sprintf("%d bytes, of at most %d", most+1, most); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), text) {
		t.Errorf("Set of more: %v; want %s", err, text)
	}
	fillAll(small)
	for i := range 7 { // those that were read may stay, however many new keys come
		c.Delete([]byte(fmt.Sprint(i)))
	}
	isLent := func() (is bool) {
		for i := range c.shards {
			is = is || c.shards[i].limit != c.shards[i].share
		}
		return is
	}
	for round := 1; isLent(); round++ {
		if fillAll(small / 2); round == 10 {
			for i := range c.shards {
				s := &c.shards[i]
				t.Logf("shard %d: share %d, limit %d, used %d, %d spares", i, s.share, s.limit, s.used, len(s.spares))
			}
			t.Fatalf("%d bytes, %d shards: what was lent does not come back; %d are unlent", c.options.MaxBytes, len(c.shards), c.bound.unlent.Load())
		}
	}
	c.check()
}

// TestUpdateToALargerEntry: if the function of Update returns a larger entry when it is called again,
// Update borrows room for that one.
func TestUpdateToALargerEntry(t *testing.T) {
	c := newShared(t, Options{MaxBytes: 16 << 20})
	k, calls := []byte("k"), 0
	must(c.Update(k, func(e *Entry, _ bool) Change {
		calls++
		e.Value = make([]byte, min(calls*2<<20, 6<<20))
		return Store
	}))
	if v, ok := c.Get(nil, k); !ok || len(v) != 6<<20 || calls != 4 {
		t.Errorf("%t, %d bytes after %d calls", ok, len(v), calls)
	}
	c.check()
}

// TestLargestStaysWhileAReaderHoldsIt: an entry that has no room beside the one that it replaces
// does not drop it if a reader holds its memory, since that would make no room.
func TestLargestStaysWhileAReaderHoldsIt(t *testing.T) {
	c := newShared(t, Options{MaxBytes: 16 << 20})
	k := []byte("k")
	value := func(b byte) []byte { return bytes.Repeat([]byte{b}, c.MaxEntry()-len(k)) }
	must(0, c.Set(k, value(1)))
	c.View(k, func(Entry) {
		if done, err := c.Replace(k, Entry{Value: value(2)}); done || !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("Replace: %t, %v", done, err)
		}
	})
	if v, ok := c.Get(nil, k); !ok || v[0] != 1 {
		t.Errorf("the entry is there: %t", ok)
	}
	c.check()
}

// TestLargestWhileReadersHold: shards do not lend memory that readers hold. The bound holds.
func TestLargestWhileReadersHold(t *testing.T) {
	c := newShared(t, Options{MaxBytes: 16 << 20})
	c.seed = hash.SeedFrom(rand.New(rand.NewPCG(1, 2)).Uint64) // so that all four stay
	for i := range 4 {
		must(0, c.Set(fmt.Append(nil, i), bytes.Repeat([]byte{byte(i)}, 3<<20)))
	}
	if n := c.Len(); n != 4 {
		t.Fatalf("%d entries are left", n)
	}
	stored := 0
	c.View([]byte("0"), func(a Entry) {
		c.View([]byte("3"), func(b Entry) {
			for i := range 4 {
				key := fmt.Append(nil, "large ", i)
				err := c.Set(key, make([]byte, 6<<20))
				if err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Error(err)
				} else if err == nil {
					stored++
				}
				if st := c.Stats(); st.Reserved > st.MaxBytes {
					t.Errorf("%+v", st)
				}
				c.check()
			}
			if a.Value[1<<20] != 0 || b.Value[1<<20] != 3 {
				t.Error("a value that is read has changed")
			}
		})
	})
	if stored == 0 {
		t.Error("nothing was stored beside 6 of 16 MiB that are read")
	}
	must(0, c.Set([]byte("k"), make([]byte, c.MaxEntry()-1)))
}

// TestLargestKey: a key of maxKeyBytes is stored, and a longer one is refused by each call that
// stores.
func TestLargestKey(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	key := make([]byte, maxKeyBytes+1)
	must(0, c.Set(key[:maxKeyBytes], []byte("v")))
	get(t, c, string(key[:maxKeyBytes]), "v")
	_, add := c.Add(key, Entry{})
	_, update := c.Update(key, func(*Entry, bool) Change { return Store })
	for call, err := range map[string]error{"Set": c.Set(key, nil), "Add": add, "Update": update} {
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "65536 bytes, of at most 65535") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// TestResizeEndsLoans: Resize sets unlent to 0, since the new shares contain those bytes.
func TestResizeEndsLoans(t *testing.T) {
	c := newShared(t, Options{MaxBytes: 16 << 20})
	must(0, c.Set([]byte("huge"), make([]byte, c.MaxEntry()-10)))
	c.Delete([]byte("huge"))
	for i := 0; c.bound.unlent.Load() == 0; i++ { // until the shard with the loan needs room
		if must(0, c.Set(fmt.Append(nil, i), make([]byte, 1000))); i == 100_000 {
			t.Fatal("the loan is not returned")
		}
	}
	c.Resize(12 << 20)
	c.check()
}

// TestResizeKeepsLoans: a Resize that lowers no bound drops no entry, not even a huge one.
func TestResizeKeepsLoans(t *testing.T) {
	const size = 16 << 20
	c := newShared(t, Options{MaxBytes: size})
	must(0, c.Set([]byte("huge"), make([]byte, c.MaxEntry()-10)))
	for _, n := range []int{size, size + size/16, 2 * size} {
		if c.Resize(n); c.Len() != 1 || c.Stats().Shrunk > 0 {
			t.Errorf("at %d: %+v", n, c.Stats())
		}
		c.check()
	}
	c.bound.press(budget.Pressure{Level: budget.Calm})
	if c.Len() != 1 {
		t.Error("calm drops it")
	}
	c.Resize(size / 2)
	if c.check(); c.Len() != 0 {
		t.Error("half the bound still has it")
	}
}

// TestMarkWithoutMemory: Mark deletes a large entry to make room for its copy. If the parent then
// refuses memory, the entry is gone, and the next version is higher.
func TestMarkWithoutMemory(t *testing.T) {
	parent := &hooked{Allocator: alloctest.New(t)}
	refused := alloctest.FailAfter(parent.Allocator, 0)
	c := New(parent, &Options{MaxBytes: 1 << 20})
	defer c.Close()
	k := []byte("k")
	version := must(c.Put(k, Entry{Value: make([]byte, c.MaxEntry()-10)}))
	working := parent.Allocator
	parent.hook = func() { parent.Allocator = swapped{working, refused} }
	calls := 0
	_, err := c.Update(k, func(e *Entry, found bool) Change {
		calls++
		e.Flags = 1
		return Mark
	})
	if !errors.Is(err, freehold.ErrOutOfMemory) || calls > 2 || c.Len() != 0 {
		t.Errorf("%v after %d calls, with %d entries", err, calls, c.Len())
	}
	c.check()
	parent.Allocator = working
	if next := must(c.Put(k, Entry{Value: make([]byte, 10)})); next <= version {
		t.Errorf("version %d after %d", next, version)
	}
}

// A swapped allocator frees with one allocator and allocates from another.
type swapped struct {
	freehold.Allocator
	from freehold.Allocator
}

func (p swapped) Alloc(size, align int) ([]byte, error) { return p.from.Alloc(size, align) }

// TestNegativeTTL: an entry that is given a negative TTL is deleted.
func TestNegativeTTL(t *testing.T) {
	k := []byte("k")
	for name, expire := range map[string]func(c *Cache){
		"SetTTL": func(c *Cache) { must(0, c.SetTTL(k, []byte("w"), -time.Second)) },
		"Touch":  func(c *Cache) { c.Touch(k, -time.Second) },
		"Update": func(c *Cache) { must(c.Update(k, func(e *Entry, _ bool) Change { e.TTL = -1; return Touch })) },
	} {
		c := newCache(t, Options{})
		must(0, c.Set(k, []byte("v")))
		expire(c)
		if n := c.Len(); n != 0 {
			t.Errorf("%s leaves %d entries", name, n)
		}
	}
}

// Updates do not change when an entry expires, unless they set another TTL.
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

// TestUpdateWithJitter: an Update that leaves the TTL does not shorten it again.
func TestUpdateWithJitter(t *testing.T) {
	c := newCache(t, Options{Jitter: 1})
	c.fake()
	k := []byte("k")
	must(0, c.SetTTL(k, k, 1000*time.Hour))
	expires := c.found(k).it.expires.Load()
	for _, change := range []Change{Store, Touch, Mark} {
		must(c.Update(k, func(*Entry, bool) Change { return change }))
		if now := c.found(k).it.expires.Load(); now != expires {
			t.Errorf("change %d: second %d has become %d", change, expires, now)
		}
	}
}

// A hooked parent calls a hook once, before the first segment is freed.
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

// TestStatsDuringClose: Stats waits for the lock of a shard that Close is freeing.
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

// TestCloseUnderPressure: Close waits until pressure of a budget has shrunk the cache.
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

// A rounded parent rounds sizes up to multiples of a page, after it adds red zones.
type rounded struct {
	freehold.Allocator
	page, zones int
}

func (p rounded) GoodSize(n int) int { return vm.RoundUp(n+p.zones, p.page) }

// TestSegmentsOfTheParent: segments have the smallest size that the parent does not round up. Red
// zones do not enlarge them.
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
