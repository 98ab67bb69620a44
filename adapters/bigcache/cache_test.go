// What bigcache's tests leave out: callbacks, lists of writes, and memory that is freed.

package bigcache

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/suite"
)

// A second is a clock that a test sets.
type second int64

func (s *second) Epoch() int64 { return int64(*s) }

func newCache(t testing.TB, config Config, clock clock) *BigCache {
	t.Helper()
	c, err := newBigCache(context.Background(), config, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Entries that were written, read, overwritten, deleted and evicted leave by the callback, with the
// reason and the number of requests.
func TestRemoved(t *testing.T) {
	for _, name := range []string{"OnRemove", "OnRemoveWithReason", "filtered", "OnRemoveWithMetadata"} {
		for _, clean := range []time.Duration{0, time.Hour} {
			var got []string
			note := func(v ...any) { got = append(got, fmt.Sprint(v...)) }
			config := Config{Shards: 1, LifeWindow: 3 * time.Second, CleanWindow: clean, StatsEnabled: true}
			switch name {
			case "OnRemove":
				config.OnRemove = func(key string, entry []byte) { note(key, string(entry)) }
				config.OnRemoveWithReason = func(string, []byte, RemoveReason) { note("never") }
			case "filtered":
				config = config.OnRemoveFilterSet(Deleted)
				fallthrough
			case "OnRemoveWithReason":
				config.OnRemoveWithReason = func(key string, entry []byte, reason RemoveReason) { note(key, string(entry), reason) }
			case "OnRemoveWithMetadata":
				config.OnRemoveWithMetadata = func(key string, entry []byte, m Metadata) { note(key, string(entry), m.RequestCount) }
				config.OnRemove = func(string, []byte) { note("never") }
			}
			now := second(100)
			c := newCache(t, config, &now)
			c.Set("a", []byte("1"))
			c.Set("b", nil)
			c.Set("c", []byte("3"))
			c.Get("b")
			c.Append("a", []byte("2")) // a request too
			c.GetWithInfo("b")
			c.Set("b", []byte("4")) // the requests stay
			c.Delete("c")
			now = 103
			c.cleanUp(103) // at the end of the window
			c.Set("d", []byte("5"))
			c.Set("b", []byte("6"))
			now = 104
			if clean == 0 {
				c.Set("d", []byte("7")) // removes a
			} else {
				c.cleanUp(104)
			}
			c.cleanUp(104) // b was written at 103
			want := map[string][]string{
				"OnRemove":             {"c3", "a12"},
				"OnRemoveWithReason":   {"c33", "a121"},
				"filtered":             {"c33"},
				"OnRemoveWithMetadata": {"c30", "a121"},
			}[name]
			if !reflect.DeepEqual(got, want) || c.Len() != 2 || c.KeyMetadata("b").RequestCount != 2 {
				t.Errorf("%s, window of %v: %q, want %q; %d entries, %d requests", name, clean, got, want, c.Len(), c.KeyMetadata("b").RequestCount)
			}
			if s, want := c.Stats(), (Stats{Hits: 3, DelHits: 1}); s != want {
				t.Errorf("%+v, want %+v", s, want)
			}
			if c.cleanUp(108); c.Len() != 0 {
				t.Errorf("%d overwritten entries stay", c.Len())
			}
			if c.Reset(); cap(c.shards[0].list) != 0 || c.entries.Stats().MaxBytes != 8*noBound {
				t.Error("Reset keeps a list, or the cache has a bound")
			}
			c.Set("e", nil)
			if c.cleanUp(108); c.Len() != 0 {
				t.Error("an entry stays that was written after Reset")
			}
		}
	}
}

// A cache that is full calls back for each entry that makes room.
func TestNoSpace(t *testing.T) {
	removed := 0
	config := Config{Shards: 2, HardMaxCacheSize: 1, OnRemoveWithReason: func(key string, entry []byte, reason RemoveReason) {
		if removed++; reason != NoSpace || len(entry) != 1000 || len(key) < 4 {
			t.Errorf("%q, %d bytes, reason %d", key, len(entry), reason)
		}
	}}
	now := second(1)
	c := newCache(t, config, &now)
	const writes = 5000
	for i := range writes {
		if err := c.Set(fmt.Sprint("key ", i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Len(); n+removed != writes || n < 800 || c.Capacity() != 1<<20 {
		t.Errorf("%d entries and %d removed of %d, capacity %d", n, removed, writes, c.Capacity())
	}
	c.Set("large", []byte("old"))
	if err := c.Set("large", make([]byte, 1<<19)); err != errTooLarge {
		t.Error(err)
	}
	if _, err := c.Get("large"); err != ErrEntryNotFound {
		t.Error("an old value stays")
	}
}

// An entry has at most HardMaxCacheSize divided by Shards. One that was written later than now, by a
// clock that was set back, has not expired. What Get and the iterator return are copies.
func TestEntries(t *testing.T) {
	now := second(100)
	c := newCache(t, Config{Shards: 4, HardMaxCacheSize: 1, LifeWindow: time.Second}, &now)
	largest := 1<<18 - len("\x03key")
	if c.Set("key", make([]byte, largest)) != nil || c.Set("key", make([]byte, largest+1)) != errTooLarge {
		t.Error("the size of the largest entry is wrong")
	}
	c.Set("key", []byte("value"))
	now = 99
	v, r, err := c.GetWithInfo("key")
	if string(v) != "value" || r.EntryStatus != 0 || err != nil {
		t.Errorf("%q, %v, %v", v, r, err)
	}
	v[0] = 'x'
	it := c.Iterator()
	it.SetNext()
	e, err := it.Value()
	e.Value()[1] = 'x'
	if v, _ := c.Get("key"); string(v) != "value" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}

// collide is a Hasher.
type collide struct{}

func (collide) Sum64(string) uint64 { return 7 }

// A Get of another key with the same hash is no hit.
func TestCollisions(t *testing.T) {
	for _, stats := range []bool{false, true} {
		c := newCache(t, Config{Shards: 1, LifeWindow: time.Hour, StatsEnabled: stats, Hasher: collide{}}, systemClock{})
		c.Set("a", nil)
		if _, err := c.Get("b"); err != ErrEntryNotFound || c.Stats() != (Stats{Collisions: 1}) {
			t.Errorf("%v, %+v", err, c.Stats())
		}
	}
}

// A resetter is a Logger that deletes all entries before it prints, and stores others.
type resetter struct {
	c   *BigCache
	out string
}

func (r *resetter) Printf(format string, v ...interface{}) {
	r.c.Reset()
	r.c.Set(strings.Repeat("x", 100), nil)
	r.out = fmt.Sprintf(format, v...)
}

// The log's line has a copy of the other key.
func TestCollisionIsLogged(t *testing.T) {
	var r resetter
	r.c = newCache(t, Config{Shards: 1, Verbose: true, Hasher: collide{}, Logger: &r}, systemClock{})
	r.c.Set("other", nil)
	if _, err := r.c.Get("key"); err != ErrEntryNotFound || !strings.HasPrefix(r.out, `Collision detected. Both "key" and "other" have`) {
		t.Errorf("%q, %v", r.out, err)
	}
}

// The list of a shard is about as long as there are entries, whatever has been written. All entries
// leave at the end of their window.
func TestLists(t *testing.T) {
	const lifeWindow, perSecond = 100, 1000
	for name, keyOf := range map[string]func(i int) int{
		"one key":       func(int) int { return 0 },
		"overwritten":   func(i int) int { return i % 500 },
		"new and alike": func(i int) int { return i },
	} {
		now := second(1)
		c := newCache(t, Config{Shards: 2, LifeWindow: lifeWindow * time.Second, HardMaxCacheSize: 1}, &now)
		longest := 0
		for i := range 300 * perSecond {
			key := fmt.Sprint(keyOf(i))
			if err := c.Set(key, nil); err != nil {
				t.Fatal(err)
			}
			if i%7 == 0 {
				c.Delete(key)
			}
			if i%perSecond == 0 {
				now++
				for i := range c.shards {
					longest = max(longest, len(c.shards[i].list))
				}
			}
		}
		if most := 2*max(c.Len(), perSecond) + 4*leastListed; longest > most {
			t.Errorf("%s: a list has %d seconds for %d entries, want at most %d", name, longest, c.Len(), most)
		}
		seen := 0
		for it := c.Iterator(); it.SetNext(); seen++ {
			if e, err := it.Value(); err != nil || e.Timestamp() < uint64(now)-lifeWindow-1 || newDefaultHasher().Sum64(e.Key()) != e.Hash() {
				t.Fatal(e, err)
			}
		}
		if seen != c.Len() {
			t.Errorf("%s: the iterator found %d of %d", name, seen, c.Len())
		}
		if c.cleanUp(uint64(now) + lifeWindow + 1); c.Len() != 0 {
			t.Errorf("%s: %d entries are not in the lists", name, c.Len())
		}
	}
}

// Writers of one shard beside a reader, a cleaner and Reset: each entry stays in the list.
func TestBeside(t *testing.T) {
	c := newCache(t, Config{Shards: 2, LifeWindow: time.Hour, StatsEnabled: true}, systemClock{})
	const rounds = 2000
	done := make(chan bool)
	run := func(f func(i int)) {
		go func() {
			for i := range rounds {
				f(i)
			}
			done <- true
		}()
	}
	value := []byte(strings.Repeat("v", 100))
	run(func(i int) { c.Set(fmt.Sprint(i%50), value) })
	run(func(i int) { c.Append(fmt.Sprint(i%50), value) })
	run(func(i int) { c.Delete(fmt.Sprint(i % 50)) })
	run(func(i int) {
		if v, err := c.Get(fmt.Sprint(i % 50)); err == nil && len(v)%100 != 0 {
			t.Errorf("%d bytes", len(v))
		}
	})
	run(func(i int) { c.cleanUp(uint64(time.Now().Unix())) })
	run(func(i int) {
		if i%100 == 0 {
			c.Reset()
		}
		for it := c.Iterator(); i%100 == 50 && it.SetNext(); {
		}
	})
	for range 6 {
		<-done
	}
	if c.cleanUp(uint64(time.Now().Unix()) + 3602); c.Len() != 0 {
		t.Errorf("%d entries are in no list", c.Len())
	}
}

// A userContext counts the contexts that are derived from it.
type userContext struct {
	context.Context
	derived int
}

func (*userContext) Done() <-chan struct{}          { return make(chan struct{}) }
func (c *userContext) AfterFunc(func()) func() bool { c.derived++; return func() bool { return true } }

// A cache without a CleanWindow, which needs no Close, leaves nothing with its context.
func TestContext(t *testing.T) {
	ctx := &userContext{Context: context.Background()}
	for i, clean := range []time.Duration{0, time.Hour} {
		c, err := New(ctx, Config{Shards: 1, CleanWindow: clean})
		if err != nil {
			t.Fatal(err)
		}
		if c.Close(); ctx.derived != i {
			t.Errorf("a CleanWindow of %v: %d derived contexts, want %d", clean, ctx.derived, i)
		}
	}
}

// A cache without a CleanWindow is closed when nothing refers to it, and none while a method runs.
// Close frees the memory of one that is referred to.
func TestDropped(t *testing.T) {
	live := func() int { return freehold.Pages().Stats().Live + timestamps().Stats().Live }
	before := live()
	make1 := func() *BigCache {
		c, _ := New(context.Background(), Config{Shards: 4})
		if err := c.Set("key", make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for i := range 100 {
		it := make1().Iterator()
		if v, err := make1().Get("key"); len(v) != 1<<20 || err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			runtime.GC()
		}
		if !it.SetNext() {
			t.Fatal("an entry is gone")
		}
	}
	suite.AwaitCollected(t, live, before)
	c := make1()
	c.config.OnRemove = func(string, []byte) { c.Len() }
	c.Close()
	if _, err := c.Get("key"); err != ErrEntryNotFound || c.Close() != nil {
		t.Error("a closed cache has an entry, or cannot be closed again")
	}
}
