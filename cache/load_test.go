package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/panics"
)

// loaded is a function that loads a value, and counts its calls.
func loaded(v string, err error, calls *int) func(context.Context) (Entry, error) {
	return func(context.Context) (Entry, error) {
		*calls++
		return Entry{Value: []byte(v)}, err
	}
}

func TestGetOrLoad(t *testing.T) {
	c := newCache(t, Options{})
	k, calls := []byte("k"), 0
	for range 2 {
		if v := must(c.GetOrLoad(t.Context(), []byte("a"), k, loaded("v", nil, &calls))); string(v) != "av" {
			t.Fatalf("GetOrLoad = %q, want av", v)
		}
	}
	failure := errors.New("no")
	for range 2 {
		if v, err := c.GetOrLoad(t.Context(), []byte("a"), []byte("l"), loaded("", failure, &calls)); string(v) != "a" || err != failure {
			t.Fatalf("GetOrLoad = %q, %v", v, err)
		}
	}
	if calls != 3 {
		t.Errorf("%d loads, want one of the value, and each that fails", calls)
	}
	large := string(make([]byte, MinBytes))
	if v := must(c.GetOrLoad(t.Context(), nil, []byte("m"), loaded(large, nil, &calls))); len(v) != MinBytes {
		t.Errorf("%d bytes of a value too large to be stored", len(v))
	}
}

// TestNegative: GetOrLoad remembers for Options.Negative, or for the TTL that load returns, that a
// key has no value. Get finds no entry.
func TestNegative(t *testing.T) {
	for _, ttl := range []time.Duration{0, 5 * time.Second, time.Minute} {
		c := newOf(t, &OfOptions[string, string]{Options: Options{Negative: 10 * time.Second}})
		clock := c.fake()
		k, calls := []byte("k"), 0
		none := func(context.Context) (Entry, error) {
			calls++
			return Entry{TTL: ttl}, fmt.Errorf("wrapped: %w", ErrNotFound)
		}
		for i := range 2 {
			if _, err := c.Cache.GetOrLoad(t.Context(), nil, k, none); !errors.Is(err, ErrNotFound) || i > 0 && err != ErrNotFound {
				t.Fatal(err)
			}
		}
		if get(t, &c.Cache, "k", ""); calls != 1 || c.Cache.Delete(k) {
			t.Fatalf("%d loads; or Delete found it", calls)
		}
		c.GetOrLoad(t.Context(), "k", func(context.Context) (EntryOf[string], error) {
			return EntryOf[string]{TTL: ttl}, ErrNotFound
		})
		clock.now += cmp.Or(ttl, 10*time.Second) - time.Second
		if _, err := c.GetOrLoad(t.Context(), "k", nil); err != ErrNotFound {
			t.Fatal(err)
		}
		clock.now += time.Second
		if v := must(c.Cache.GetOrLoad(t.Context(), nil, k, loaded("v", nil, &calls))); string(v) != "v" || calls != 2 {
			t.Fatalf("%q after %d loads", v, calls)
		}
		c.check()
	}
}

// TestAbsentIsNoEntry: an absent item is neither reported to OnEvict nor counted. Without
// Options.Negative there is no item.
func TestAbsentIsNoEntry(t *testing.T) {
	for _, negative := range []time.Duration{0, time.Hour} {
		told := 0
		c := newCache(t, Options{Negative: negative, OnEvict: func([]byte, Entry, Reason) { told++ }})
		for i := range 20_000 {
			c.GetOrLoad(t.Context(), nil, fmt.Append(nil, i), loaded("", ErrNotFound, new(int)))
		}
		if st := c.Stats(); told > 0 || st.Evicted > 0 || (st.Live > 0) != (negative > 0) {
			t.Errorf("Negative %v: OnEvict is told %d times, %+v", negative, told, st)
		}
	}
}

// TestOneLoad: goroutines that ask for a key during its load get the result of that load.
func TestOneLoad(t *testing.T) {
	const goroutines = 16
	c := newCache(t, Options{})
	var asked, calls atomic.Int32
	together(goroutines, func(int) {
		asked.Add(1)
		v, err := c.GetOrLoad(t.Context(), nil, []byte("k"), func(context.Context) (Entry, error) {
			for asked.Load() < goroutines {
				runtime.Gosched()
			}
			calls.Add(1)
			return Entry{Value: []byte("v")}, nil
		})
		if string(v) != "v" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	})
	if n := calls.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// TestWriteDuringLoad: a load does not replace a newer state of its key, and a later call does not
// wait for it.
func TestWriteDuringLoad(t *testing.T) {
	for _, o := range []Options{{}, {RefreshAfter: time.Second}} {
		t.Run(fmt.Sprint("RefreshAfter ", o.RefreshAfter), func(t *testing.T) { testWriteDuringLoad(t, o) })
	}
}

func testWriteDuringLoad(t *testing.T, o Options) {
	c := newCache(t, o)
	clock := c.fake()
	k := []byte("k")
	later := func(context.Context) (Entry, error) { return Entry{Value: []byte("later")}, nil }
	for _, tt := range []struct {
		name  string
		write func()
		want  string
	}{
		{"set", func() { must(0, c.Set(k, []byte("set"))) }, "set"},
		{"deleted", func() { c.Delete(k) }, ""},
		{"removed", func() { must(c.Update(k, func(*Entry, bool) Change { return Remove })) }, ""},
		{"cleared", func() { c.Clear() }, ""},
		{"too large", func() { c.Set(k, make([]byte, MinBytes)) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.Delete(k)
			want := "loaded"
			if o.RefreshAfter > 0 {
				want = "old"
				must(0, c.Set(k, []byte(want)))
				clock.now += 2 * o.RefreshAfter
			}
			v := must(c.GetOrLoad(t.Context(), nil, k, func(context.Context) (Entry, error) {
				tt.write()
				v := must(c.GetOrLoad(t.Context(), nil, k, later))
				if string(v) != cmp.Or(tt.want, "later") {
					t.Errorf("GetOrLoad after the write = %q", v)
				}
				return Entry{Value: []byte("loaded")}, nil
			}))
			c.refreshes.wait()
			if string(v) != want {
				t.Errorf("GetOrLoad = %q, want %q", v, want)
			}
			get(t, c, "k", cmp.Or(tt.want, "later"))
		})
	}
}

// TestWaitersLoadThemselves: if the context of the loading goroutine ends, or load panics, a
// waiting goroutine loads.
func TestWaitersLoadThemselves(t *testing.T) {
	for name, end := range map[string]func(cancel func()) (Entry, error){
		"canceled": func(cancel func()) (Entry, error) { cancel(); return Entry{}, context.Canceled },
		"panics":   func(func()) (Entry, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began, done := make(chan bool), make(chan string)
			go func() {
				<-began
				v, _ := c.GetOrLoad(t.Context(), nil, []byte("k"), func(context.Context) (Entry, error) {
					return Entry{Value: []byte("second")}, nil
				})
				done <- string(v)
			}()
			func() {
				defer func() { recover() }()
				c.GetOrLoad(ctx, nil, []byte("k"), func(context.Context) (Entry, error) {
					began <- true
					return end(cancel)
				})
			}()
			if v := <-done; v != "second" {
				t.Errorf("the second one got %q", v)
			}
		})
	}
}

// TestWaiterLeaves: a goroutine stops waiting for a load when its context ends.
func TestWaiterLeaves(t *testing.T) {
	c := newCache(t, Options{})
	must(c.GetOrLoad(t.Context(), nil, []byte("k"), func(context.Context) (Entry, error) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.GetOrLoad(ctx, nil, []byte("k"), nil); err != context.Canceled {
			t.Errorf("the waiter got %v", err)
		}
		return Entry{}, nil
	}))
}

// TestTTLOfTheOptions: an entry that is stored without a TTL gets the TTL of the options. SetTTL
// and Touch of 0 make it stay for ever.
func TestTTLOfTheOptions(t *testing.T) {
	const ttl = 10 * time.Second
	o := OfOptions[string, string]{Options: Options{TTL: ttl}}
	c := newOf(t, &o)
	clock := c.fake()
	k, e := []byte("k"), Entry{Value: []byte("v")}
	set := func() { must(0, c.Cache.SetTTL(k, []byte("old"), 100*ttl)) }
	store := func(e *Entry, _ bool) Change { *e = Entry{Value: []byte("v")}; return Store }
	for name, tt := range map[string]struct {
		call func()
		want time.Duration
	}{
		"Set":               {func() { must(0, c.Cache.Set(k, e.Value)) }, ttl},
		"SetTTL":            {func() { must(0, c.Cache.SetTTL(k, e.Value, 0)) }, 0},
		"Put":               {func() { must(c.Cache.Put(k, e)) }, ttl},
		"Put with a TTL":    {func() { must(c.Cache.Put(k, Entry{Value: e.Value, TTL: 2 * ttl})) }, 2 * ttl},
		"Add":               {func() { must(c.Cache.Add(k, e)) }, ttl},
		"Replace":           {func() { set(); must(c.Cache.Replace(k, e)) }, ttl},
		"CompareAndSet":     {func() { v := must(c.Cache.Put(k, e)); clock.now += ttl / 2; must(c.Cache.CompareAndSet(k, v, e)) }, ttl},
		"Update":            {func() { must(c.Cache.Update(k, store)) }, ttl},
		"Update of another": {func() { set(); must(c.Cache.Update(k, store)) }, ttl},
		"Touch of 0":        {func() { must(c.Cache.Put(k, e)); c.Cache.Touch(k, 0) }, 0},
		"GetOrLoad":         {func() { must(c.Cache.GetOrLoad(t.Context(), nil, k, loaded("v", nil, new(int)))) }, ttl},
		"Of.Set":            {func() { must(0, c.Set("k", "v")) }, ttl},
		"Of.SetTTL":         {func() { must(0, c.SetTTL("k", "v", 0)) }, 0},
		"Of.GetOrLoad": {func() {
			must(c.GetOrLoad(t.Context(), "k", typedLoad("v", nil)))
		}, ttl},
	} {
		c.Clear()
		tt.call()
		expires := tt.want != 0
		clock.now += tt.want - time.Second
		if !c.Cache.Peek(k, func(Entry) {}) {
			t.Errorf("%s: it lives less than %v", name, tt.want)
		}
		clock.now += 3 * time.Second
		if c.Cache.Peek(k, func(Entry) {}) == expires {
			t.Errorf("%s: want a life of %v", name, tt.want)
		}
	}
}

// TestExpiry: Options.Expiry gives the TTL of entries that are stored without one, and those that
// are read, in types and by every call. Model tests do more.
func TestExpiry(t *testing.T) {
	var asked []string
	c := newOf(t, &OfOptions[string, string]{Values: formats(1), Expiry: func(k string, e EntryOf[string], read bool) time.Duration {
		asked = append(asked, fmt.Sprint(k, " ", e.Value, " ", e.TTL, " ", read))
		if read {
			return e.TTL + time.Minute
		}
		return time.Duration(len(e.Value)) * time.Second
	}})
	clock := c.fake()
	ttl := func(k string) (ttl time.Duration) {
		c.Peek(k, func(e EntryOf[string]) { ttl = e.TTL })
		return ttl
	}
	for name, tt := range map[string]struct {
		call  func(k string)
		want  time.Duration
		asked string
	}{
		"Set":            {func(k string) { must(0, c.Set(k, "value")) }, 5 * time.Second, " value 0s false"},
		"Set with a TTL": {func(k string) { must(0, c.SetTTL(k, "value", time.Hour)) }, time.Hour, ""},
		"Set for ever":   {func(k string) { must(0, c.SetTTL(k, "value", 0)) }, 0, ""},
		"Add":            {func(k string) { must(c.Add(k, EntryOf[string]{Value: "new"})) }, 3 * time.Second, " new 0s false"},
		"GetOrLoad":      {func(k string) { must(c.GetOrLoad(t.Context(), k, typedLoad("loaded", nil))) }, 6 * time.Second, " loaded 0s false"},
	} {
		asked = nil
		if tt.call(name); ttl(name) != tt.want || tt.asked != "" && !slices.Equal(asked, []string{name + tt.asked}) {
			t.Errorf("%s: a TTL of %v, asked for %q; want %v, %q", name, ttl(name), asked, tt.want, tt.asked)
		}
		clock.now += time.Second
		asked = nil
		c.Get(name)
		if left := max(tt.want-time.Second, 0); left > 0 && (ttl(name) != left+time.Minute || len(asked) != 1) || left == 0 && len(asked) != 0 {
			t.Errorf("%s: after a read a TTL of %v, asked for %q", name, ttl(name), asked)
		}
	}
	// An entry that cannot be decoded keeps its TTL.
	must(0, c.SetTTL("k", "v", time.Hour))
	c.values = *formats(2)
	c.Cache.Get(nil, []byte("k"))
	c.Cache.Peek([]byte("k"), func(e Entry) {
		if e.TTL != time.Hour {
			t.Errorf("an undecodable entry has %v", e.TTL)
		}
	})
}

// TestLoadsAreCountedOnce: Stats counts one hit or one miss for each GetOrLoad.
func TestLoadsAreCountedOnce(t *testing.T) {
	c := newCache(t, Options{Negative: time.Minute})
	calls := 0
	for range 2 {
		must(c.GetOrLoad(t.Context(), nil, []byte("k"), loaded("v", nil, &calls)))
		c.GetOrLoad(t.Context(), nil, []byte("none"), loaded("", ErrNotFound, &calls))
	}
	if st := c.Stats(); st.Hits != 1 || st.Misses != 3 || st.Sets != 2 || calls != 2 {
		t.Errorf("%+v after %d loads", st, calls)
	}
}

// TestLoadsOfOneShard: only the shard of a key counts the load of that key.
func TestLoadsOfOneShard(t *testing.T) {
	c := newShared(t, Options{MaxBytes: 64 << 20})
	under := func() (n int64) {
		for i := range c.shards {
			n += c.shards[i].loads.n.Load()
		}
		return n
	}
	k := []byte("k")
	mine := &c.shardOf(c.seed.Bytes(k)).loads
	must(c.GetOrLoad(t.Context(), nil, k, func(context.Context) (Entry, error) {
		if mine.n.Load() != 1 || under() != 1 {
			t.Errorf("%d loads are under way, %d of the key's shard", under(), mine.n.Load())
		}
		return Entry{}, nil
	}))
	if under() != 0 {
		t.Error("a load has not left")
	}
}

// TestLoadBeginsDuringASet: a load that begins while a Set has the lock of the shard, and is about to
// store the entry, does not replace it.
func TestLoadBeginsDuringASet(t *testing.T) {
	var c *Cache
	began, goOn, loads := make(chan bool), make(chan bool), sync.WaitGroup{}
	load := sync.OnceFunc(func() {
		loads.Go(func() {
			must(c.GetOrLoad(t.Context(), nil, []byte("k"), func(context.Context) (Entry, error) {
				close(began)
				<-goOn
				return Entry{Value: []byte("loaded")}, nil
			}))
		})
		<-began
	})
	c = newCache(t, Options{Expiry: func([]byte, Entry, bool) time.Duration {
		load() // under the lock
		return 0
	}})
	must(0, c.Set([]byte("k"), []byte("set")))
	close(goOn)
	loads.Wait()
	get(t, c, "k", "set")
}

// TestNoLoadBeginsDuringItsStore: a call that asks for a key while the cache stores what a load has
// returned joins that load.
func TestNoLoadBeginsDuringItsStore(t *testing.T) {
	var c *Cache
	k := []byte("k")
	c = newCache(t, Options{Expiry: func([]byte, Entry, bool) time.Duration { // under the lock
		loads := &c.shardOf(c.seed.Bytes(k)).loads
		if l, first := loads.join(k); first {
			t.Error("another load begins")
			loads.leave(l)
		}
		return 0
	}})
	must(c.GetOrLoad(t.Context(), nil, k, func(context.Context) (Entry, error) { return Entry{Value: k}, nil }))
}

// A load that was overtaken by a write leaves the later load of its key where writes find it.
func TestOvertakenLoadLeaves(t *testing.T) {
	c := newCache(t, Options{})
	k := []byte("k")
	loads := &c.shardOf(c.seed.Bytes(k)).loads
	one, _ := loads.join(k)
	must(0, c.Set(k, k))
	two, first := loads.join(k)
	loads.leave(one)
	if c.Delete(k); !first || !two.written.Load() {
		t.Errorf("a later load begins: %t; a write finds it: %t", first, two.written.Load())
	}
	loads.leave(two)
}

// TestErrorsOfLoads: of the errors of several keys, ErrNotFound is returned only if there is no
// other. The goroutines that wait for a load get its error, and do not load again.
func TestErrorsOfLoads(t *testing.T) {
	c := newCache(t, Options{})
	failed := errors.New("failed")
	var todo []wanted
	for i, key := range []string{"a", "b", "c"} {
		todo = append(todo, newWanted(c.seed.String(key), i, []byte(key)))
	}
	var loading [3]*loading
	ld := loader{c: c, load: func(_ context.Context, mine []wanted) (result, error) {
		return func(w *wanted) (Entry, error) {
			loading[w.i] = w.l
			return Entry{}, [...]error{ErrNotFound, failed, ErrNotFound}[w.i]
		}, nil
	}}
	if err := ld.loadMissing(t.Context(), todo); err != failed {
		t.Errorf("%v, want %v", err, failed)
	}
	if l := loading[1]; l.again || l.err != failed {
		t.Errorf("who waits loads again: %t, or gets %v", l.again, l.err)
	}
}

// TestReadDuringALookup: GetOrLoad finds an expired entry, and another read gives it a new TTL at
// that moment. The key counts as missing, and not as remembered as not found.
func TestReadDuringALookup(t *testing.T) {
	for look := range 8 {
		c := newCache(t, Options{TTL: time.Minute})
		clock := c.fake()
		k := []byte("k")
		must(0, c.Set(k, k))
		r := c.shards[0].find(c.seed.Bytes(k), k)
		clock.now += 2 * time.Minute
		clock.at, clock.hook = 1+look, func() { r.it.expires.Store(c.clock.expires(time.Hour)) }
		if _, err := c.GetOrLoad(t.Context(), nil, k, func(context.Context) (Entry, error) { return Entry{}, nil }); err != nil {
			t.Errorf("read at look %d: %v", look, err)
		}
		c.shards[0].unpin(r)
	}
}

// TestLoadCounts: Stats counts loads, those that fail or panic, and refreshes.
func TestLoadCounts(t *testing.T) {
	c := newCache(t, Options{RefreshAfter: time.Second})
	clock := c.fake()
	load := func(key string, e Entry, err error) {
		c.GetOrLoad(t.Context(), nil, []byte(key), func(context.Context) (Entry, error) {
			if e.Flags > 0 {
				panic("no")
			}
			return e, err
		})
	}
	want := func(loads, failed, refreshes uint64) {
		t.Helper()
		if st := c.Stats(); st.Loads != loads || st.LoadsFailed != failed || st.Refreshes != refreshes {
			t.Errorf("%d loads, %d failed, %d refreshes; want %d, %d and %d", st.Loads, st.LoadsFailed, st.Refreshes, loads, failed, refreshes)
		}
	}
	load("a", Entry{}, nil)
	load("a", Entry{}, nil)
	want(1, 0, 0)
	load("b", Entry{}, ErrNotFound)
	want(2, 0, 0)
	load("b", Entry{}, errors.New("failed"))
	want(3, 1, 0)
	panics.Want(t, "no", func() { load("b", Entry{Flags: 1}, nil) })
	want(4, 2, 0)
	c.GetOrLoadMany(t.Context(), [][]byte{[]byte("a"), []byte("c"), []byte("d")}, func(context.Context, [][]byte) (map[string]Entry, error) {
		return nil, errors.New("failed")
	}, func(int, Entry) {})
	want(6, 4, 0)
	clock.now += time.Minute
	load("a", Entry{}, nil)
	c.refreshes.wait()
	want(7, 4, 1)
}
