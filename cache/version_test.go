package cache

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
)

// ttls has a TTL of each class.
var ttls = [classes]time.Duration{0, 10 * time.Second, time.Minute, 4 * time.Minute, time.Hour}

// versionOf returns the version of a key, or 0.
func (c *Cache) versionOf(key []byte) (v uint64) {
	c.Peek(key, func(e Entry) { v = e.Version })
	return v
}

// TestVersionsAreFree: if all entries have one TTL, few of them need memory for their versions.
func TestVersionsAreFree(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 8 << 20})
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		key := fmt.Append(nil, min(r.IntN(20_000), r.IntN(20_000)))
		switch {
		case r.IntN(20) == 0:
			c.Delete(key)
		default:
			if _, ok := c.Get(nil, key); !ok || r.IntN(10) == 0 {
				must(0, c.Set(key, make([]byte, 200+r.IntN(800))))
			}
		}
	}
	items, own := 0, 0
	for i := range c.shards {
		c.shards[i].each(func(slot) bool { return true }, func(r pinned) bool {
			items++
			if r.it.shape&versioned != 0 {
				own++
			}
			return true
		})
	}
	t.Logf("%d of %d items have a version of their own", own, items)
	if own*8 > items {
		t.Errorf("%d of %d items have a version of their own", own, items)
	}
}

// A history has the highest version of each key that a test has seen, over several caches.
type history struct {
	t        *testing.T
	r        *rand.Rand
	c        *Cache
	clock    *fakeTime
	highest  map[string]uint64
	snapshot []byte
}

// begin makes a new cache, as a new process does. With a snapshot, the system's clock may have been
// set back.
func (x *history) begin() {
	if x.c != nil {
		x.c.Close()
	}
	x.c = New(freehold.Pages(), &Options{MaxBytes: MinBytes + x.r.IntN(3)*MinBytes})
	x.clock = x.c.fake()
	if x.snapshot != nil {
		for i := range x.c.shards {
			x.c.shards[i].age, x.c.shards[i].floor = 0, 0
		}
		must(0, x.c.Restore(bytes.NewReader(x.snapshot)))
		for key := range x.highest {
			x.see([]byte(key), x.c.versionOf([]byte(key)), true)
		}
	}
}

// see checks a version of a key. A new state has a higher version than all states before.
func (x *history) see(key []byte, v uint64, isNew bool) {
	last := x.highest[string(key)]
	if v != 0 && (v < last || isNew && v == last) {
		x.t.Fatalf("%q has version %d after %d", key, v, last)
	}
	x.highest[string(key)] = max(v, last)
}

func (x *history) entry() Entry {
	e := Entry{Value: make([]byte, x.r.IntN(300)), TTL: ttls[x.r.IntN(classes)], Flags: uint64(x.r.IntN(2))}
	if x.r.IntN(50) == 0 {
		e.Value = make([]byte, x.r.IntN(x.c.MaxEntry()-20))
	}
	return e
}

func (x *history) step() {
	key := fmt.Append(nil, x.r.IntN(2000))
	x.see(key, x.c.versionOf(key), false)
	switch op := x.r.IntN(1000); {
	case op < 400:
		x.see(key, must(x.c.Put(key, x.entry())), true)
	case op < 500:
		next := x.entry()
		x.see(key, must(x.c.Update(key, func(e *Entry, _ bool) Change {
			*e = next
			return Store
		})), true)
	case op < 600:
		x.c.Get(nil, key)
		x.c.Touch(key, ttls[x.r.IntN(classes)])
	case op < 700:
		v := x.c.versionOf(key)
		if set, _ := x.c.CompareAndSet(key, v, x.entry()); set {
			x.see(key, x.c.versionOf(key), true)
		}
	case op < 750:
		isNew := x.c.versionOf(key) == 0
		must(x.c.GetOrLoad(context.Background(), nil, key, func(context.Context) (Entry, error) { return x.entry(), nil }))
		x.see(key, x.c.versionOf(key), isNew)
	case op < 970:
		x.c.Delete(key)
	case op < 990:
		x.clock.now += time.Duration(x.r.IntN(20_000)) * time.Millisecond
	case op < 996:
		x.c.Resize(MinBytes + x.r.IntN(MinBytes))
	case op < 997:
		x.c.Clear()
	case op < 998:
		var b bytes.Buffer
		must(0, x.c.Snapshot(&b))
		x.snapshot = b.Bytes()
	case op < 999 && x.snapshot != nil: // an older one
		must(0, x.c.Restore(bytes.NewReader(x.snapshot)))
		for key := range x.highest {
			x.see([]byte(key), x.c.versionOf([]byte(key)), false)
		}
	default:
		if x.r.IntN(4) == 0 {
			x.restart()
		}
	}
}

// restart begins a new cache, with a snapshot that was just made, or with none.
func (x *history) restart() {
	x.snapshot = nil
	if x.r.IntN(2) == 0 {
		var b bytes.Buffer
		must(0, x.c.Snapshot(&b))
		x.snapshot = b.Bytes()
	}
	x.begin()
}

// TestVersionsGrow: versions of a key only grow, from one cache to the next too.
func TestVersionsGrow(t *testing.T) {
	steps := 1_000_000
	if testing.Short() {
		steps = 50_000
	}
	x := &history{t: t, r: rand.New(rand.NewPCG(3, 4)), highest: map[string]uint64{}}
	x.begin()
	for range steps {
		x.step()
	}
	x.c.check()
	x.c.Close()
}

// TestVersionsOfRaisedCaches: after raise, new entries have higher versions, even in segments that
// were open before.
func TestVersionsOfRaisedCaches(t *testing.T) {
	c := newCache(t, Options{})
	v := must(c.Put([]byte("first"), Entry{}))
	c.raise(v + 1<<40)
	if next := must(c.Put([]byte("next"), Entry{})); next <= v+1<<40 {
		t.Errorf("version %d, raised to %d", next, v+1<<40)
	}
}

// TestVersionsOfManyRewrites: rewrites take an item's own version beyond the positions of its
// segment. An entry that is stored after Clear has a higher version still.
func TestVersionsOfManyRewrites(t *testing.T) {
	c := newCache(t, Options{})
	c.raise(c.highestVersion())
	must(0, c.SetTTL([]byte("open"), nil, time.Hour))
	must(0, c.Set([]byte("k"), nil))
	must(0, c.SetTTL([]byte("k"), []byte("longer"), time.Hour))
	if c.found([]byte("k")).it.shape&versioned == 0 {
		t.Fatal("it has no version of its own")
	}
	last := uint64(0)
	for range 3 << (c.shards[0].segs.ageBits + rewriteBits) {
		if last = must(c.Put([]byte("k"), Entry{Value: []byte("own"), TTL: time.Hour})); last > c.highestVersion() {
			t.Fatalf("version %d is above %d", last, c.highestVersion())
		}
	}
	c.Clear()
	if v := must(c.Put([]byte("k"), Entry{})); v <= last {
		t.Errorf("version %d after %d", v, last)
	}
}

// TestVersionAtAPosition: an item whose position is the version before gets a version of its own.
func TestVersionAtAPosition(t *testing.T) {
	c := newCache(t, Options{})
	k, s := []byte("k"), &c.shards[0]
	must(0, c.Set(k, nil))
	v := must(c.Update(k, func(e *Entry, _ bool) Change { // keeps the version at another place
		e.Flags = 7
		return Mark
	}))
	open, _ := s.segs.split(c.found(k).w.place())
	next := s.position(open, s.segs.at(open).used)
	for v < next {
		v = must(c.Put(k, Entry{Flags: 7}))
	}
	if again := must(c.Put(k, Entry{Flags: 7, Value: make([]byte, 100)})); v != next || again <= v {
		t.Errorf("version %d at position %d, and then %d", v, next, again)
	}
}

// TestVersionsBeginAnew: a new cache begins above the versions of all closed caches.
func TestVersionsBeginAnew(t *testing.T) {
	c := newCache(t, Options{})
	v := must(c.Put([]byte("k"), Entry{}))
	for range 100 {
		c.raise(v + 1<<40) // as much as an hour of work
		v = must(c.Put([]byte("k"), Entry{}))
		c.Close()
		c = newCache(t, Options{})
		next := must(c.Put([]byte("k"), Entry{}))
		if next <= v {
			t.Fatalf("version %d after %d", next, v)
		}
		v = next
	}
}

// TestVersionsOfKeysDiffer: keys that are stored once have different versions, in all shards.
func TestVersionsOfKeysDiffer(t *testing.T) {
	c := New(freehold.Pages(), &Options{MaxBytes: 64 << 20})
	defer c.Close()
	if len(c.shards) < 2 {
		t.Skip("one shard")
	}
	seen := map[uint64]int{}
	for i := range 50_000 {
		v := must(c.Put(fmt.Append(nil, i), Entry{Value: make([]byte, 100)}))
		if other, again := seen[v]; again {
			t.Fatalf("version %d of keys %d and %d", v, other, i)
		}
		seen[v] = i
	}
}
