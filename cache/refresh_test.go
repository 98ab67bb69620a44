package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// wait waits until all refreshes have ended.
func (r *refreshes) wait() {
	r.mu.Lock()
	all := slices.Collect(func(yield func(chan struct{}) bool) {
		for done := range r.all {
			if !yield(done) {
				return
			}
		}
	})
	r.mu.Unlock()
	for _, done := range all {
		<-done
	}
}

// inBubble runs f with a cache of strings whose entries are due after 10 seconds, and expire after
// a minute, in a bubble with a clock of its own.
func inBubble(t *testing.T, f func(t *testing.T, c *Of[string, string])) {
	synctest.Test(t, func(t *testing.T) {
		c := newOf(t, &OfOptions[string, string]{Options: Options{TTL: time.Minute, RefreshAfter: 10 * time.Second}})
		defer c.Close()
		must(0, c.Set("k", "old"))
		f(t, c)
		c.check()
	})
}

// TestRefresh: while one goroutine loads an entry anew, all calls get the old value. Its context
// has the values of the caller's, and does not end with it.
func TestRefresh(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Of[string, string]) {
		began, calls := time.Now(), 0
		type key struct{}
		ask := func() string {
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
			defer cancel()
			return must(c.GetOrLoad(ctx, "k", func(ctx context.Context) (EntryOf[string], error) {
				if _, ok := ctx.Deadline(); ok || ctx.Value(key{}) != "value" {
					t.Errorf("the load has %v", ctx)
				}
				calls++
				time.Sleep(4500 * time.Millisecond)
				return EntryOf[string]{Value: fmt.Sprint("load ", calls)}, ctx.Err()
			}))
		}
		for range 100 {
			now, want, wantCalls := time.Since(began), "old", 0
			if n := (now - 10*time.Second) / (15 * time.Second); now >= 10*time.Second {
				wantCalls = int(n) + 1
				if loads := int((now - 15*time.Second) / (15 * time.Second)); now >= 15*time.Second {
					want = fmt.Sprint("load ", loads+1)
				}
			}
			got := ask()
			if synctest.Wait(); got != want || calls != wantCalls {
				t.Fatalf("%q after %v and %d loads, want %q and %d", got, now, calls, want, wantCalls)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestRefreshFails: if a load fails, the old value stays, and the first call after a second loads
// again. If there is no such value, the entry goes.
func TestRefreshFails(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Of[string, string]) {
		calls, failure := 0, errors.New("no")
		ask := func() (string, error) {
			defer synctest.Wait()
			return c.GetOrLoad(t.Context(), "k", func(ctx context.Context) (EntryOf[string], error) {
				calls++
				return EntryOf[string]{}, failure
			})
		}
		time.Sleep(10 * time.Second)
		for i := range 10 {
			if got := must(ask()); got != "old" || calls != i/2+1 {
				t.Fatalf("%q after %d loads in %d half seconds", got, calls, i)
			}
			time.Sleep(time.Second / 2)
		}
		failure = ErrNotFound
		if got := must(ask()); got != "old" || c.Len() != 0 {
			t.Fatalf("%q of %d entries", got, c.Len())
		}
		if got, err := ask(); err != ErrNotFound || calls != 7 {
			t.Fatalf("%q, %v after %d loads", got, err, calls)
		}
	})
}

// TestRefreshPanics: a load that panics leaves the old value, and another one may begin.
func TestRefreshPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Of[string, string]) {
		h := c.seed.Bytes([]byte("k"))
		ld := loader{c: &c.Cache, load: func(context.Context, []wanted) (result, error) { panic("no") }}
		mine, _ := c.join([]wanted{newWanted(h, 0, []byte("k"))})
		func() {
			defer func() {
				if recover() != "no" {
					t.Error("no panic")
				}
			}()
			ld.loadJoined(t.Context(), mine, func(*wanted) bool { return true }, nil)
		}()
		if n := c.shardOf(h).loads.n.Load(); n != 0 {
			t.Errorf("%d loads are under way", n)
		}
		if v, _ := c.Get("k"); v != "old" {
			t.Errorf("Get = %q", v)
		}
	})
}

// TestCloseWaits: Close cancels loads that calls have begun in goroutines, also those that such a
// load begins meanwhile, and waits for them.
func TestCloseWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Of[string, string]) {
		must(0, c.Set("l", "old"))
		time.Sleep(10 * time.Second)
		var ended atomic.Int32
		wait := func(ctx context.Context) (EntryOf[string], error) {
			<-ctx.Done()
			ended.Add(1)
			return EntryOf[string]{Value: "new"}, nil
		}
		must(c.GetOrLoad(t.Context(), "k", func(ctx context.Context) (EntryOf[string], error) {
			<-ctx.Done()
			must(c.GetOrLoad(ctx, "l", wait))
			return wait(ctx)
		}))
		c.Close()
		if n := ended.Load(); n != 2 {
			t.Errorf("%d loads have ended", n)
		}
	})
}

// TestCloseDuringALoad: a load that ends after Close is not stored, whatever its size. Its caller
// gets the value.
func TestCloseDuringALoad(t *testing.T) {
	for _, size := range []int{1, 6 << 20} {
		c := newCache(t, Options{MaxBytes: 16 << 20})
		v, err := c.GetOrLoad(t.Context(), nil, []byte("k"), func(context.Context) (Entry, error) {
			c.Close()
			return Entry{Value: make([]byte, size)}, nil
		})
		if len(v) != size || err != nil || c.Stats().Reserved != 0 {
			t.Errorf("%d bytes, %v, %+v", len(v), err, c.Stats())
		}
	}
}

// TestRefreshSurvivesMoves: an entry that is moved, marked or touched is due when it would have
// been, or later.
func TestRefreshSurvivesMoves(t *testing.T) {
	c := newCache(t, Options{RefreshAfter: time.Hour, Access: true})
	clock := c.fake()
	keep := func(i int) []byte { return fmt.Append(nil, "keep ", i) }
	for i := range 100 {
		must(c.Put(keep(i), Entry{Value: make([]byte, 100), Flags: 1 << (i % 64)}))
	}
	for i := range 20_000 {
		must(0, c.Set(fmt.Append(nil, i), make([]byte, 100)))
		c.Get(nil, keep(i%100))
	}
	if c.Stats().Copied == 0 {
		t.Fatal("nothing was moved")
	}
	due := func() (n int) {
		for i := range 100 {
			if c.isDue(c.seed.Bytes(keep(i)), keep(i)) {
				n++
			}
		}
		return n
	}
	clock.now = time.Hour - time.Second
	if early := due(); early != 0 {
		t.Errorf("%d are due early", early)
	}
	clock.now = time.Hour + time.Second
	if n := due(); n != 100 || due() != 0 {
		t.Errorf("%d of 100 are due once", n)
	}
}

// A bulk is a loader of many keys: of each key but "none". It notes the keys that it is asked for.
type bulk struct {
	asked []string
	err   error
	do    func() // during the load, unless it is nil
}

func (b *bulk) load(_ context.Context, missing []string) (map[string]EntryOf[string], error) {
	b.asked = append(b.asked, strings.Join(missing, " "))
	if b.do != nil {
		b.do()
	}
	all := map[string]EntryOf[string]{"not asked for": {Value: "x"}}
	for _, k := range missing {
		if k != "none" {
			all[k] = EntryOf[string]{Value: "loaded " + k}
		}
	}
	return all, b.err
}

// getMany calls GetOrLoadMany with keys, and returns the values.
func getMany(c *Of[string, string], ctx context.Context, b *bulk, keys ...string) (got []string, err error) {
	got = make([]string, len(keys))
	err = c.GetOrLoadMany(ctx, keys, b.load, func(i int, e EntryOf[string]) { got[i] += e.Value })
	return got, err
}

// bytesMany is getMany of the embedded Cache.
func bytesMany(c *Of[string, string], ctx context.Context, b *bulk, keys ...string) (got []string, err error) {
	got = make([]string, len(keys))
	var all [][]byte
	for _, k := range keys {
		all = append(all, []byte(k))
	}
	err = c.Cache.GetOrLoadMany(ctx, all, func(ctx context.Context, missing [][]byte) (map[string]Entry, error) {
		var some []string
		for _, k := range missing {
			some = append(some, string(k))
		}
		found, err := b.load(ctx, some)
		entries := map[string]Entry{}
		for k, e := range found {
			entries[k] = withValue(&e, []byte(e.Value))
		}
		return entries, err
	}, func(i int, e Entry) { got[i] += string(e.Value) })
	return got, err
}

var many = map[string]func(c *Of[string, string], ctx context.Context, b *bulk, keys ...string) ([]string, error){
	"Of": getMany, "Cache": bytesMany,
}

// TestGetOrLoadMany: one load gets all missing keys, and each index gets its entry once. Keys that
// are not found are remembered.
func TestGetOrLoadMany(t *testing.T) {
	for name, get := range many {
		t.Run(name, func(t *testing.T) {
			c := newOf(t, &OfOptions[string, string]{Options: Options{Negative: time.Minute}})
			b := &bulk{err: errors.New("no")}
			must(0, c.Set("a", "set a"))
			want := func(keys, values string, wantErr error, asked ...string) {
				t.Helper()
				b.asked = nil
				got, err := get(c, t.Context(), b, strings.Fields(keys)...)
				if strings.Join(got, ",") != values || err != wantErr || !slices.Equal(b.asked, asked) {
					t.Errorf("%s = %q, %v, asked for %q; want %q, %v, %q", keys, got, err, b.asked, values, wantErr, asked)
				}
			}
			want("b a c", ",set a,", b.err, "b c")
			b.err = nil
			want("b a none b c", "loaded b,set a,,loaded b,loaded c", nil, "b none c")
			want("c none b", "loaded c,,loaded b", nil)
			want("", "", nil)
			if _, ok := c.Get("not asked for"); ok {
				t.Error("a key that nobody asked for is stored")
			}
			var keys []string
			for i := range 100 {
				keys = append(keys, fmt.Sprint(i))
			}
			if got, err := get(c, t.Context(), b, keys...); err != nil || slices.Contains(got, "") || len(b.asked) != 1 {
				t.Errorf("%q, %v in %d loads", got, err, len(b.asked))
			}
			b.err = ErrNotFound // of all
			want("x y", ",", nil, "x y")
			want("x y", ",", nil)
			b.err, b.do = nil, func() { must(0, c.Set("d", "set meanwhile")) }
			want("d", "loaded d", nil, "d")
			want("d", "set meanwhile", nil)
			c.check()
		})
	}
}

// TestManyAndOne: two calls that each load a key of the other's wait for each other's loads, and
// not for ever. If one's context ends, the other loads what it left.
func TestManyAndOne(t *testing.T) {
	for name, get := range many {
		for _, cancels := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " cancels ", cancels), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newOf(t, &OfOptions[string, string]{})
					defer c.Close()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					first := &bulk{}
					first.do = func() {
						if time.Sleep(time.Second); cancels {
							cancel()
							first.err = ctx.Err()
						}
					}
					second := &bulk{do: func() { time.Sleep(2 * time.Second) }}
					go func() {
						got, err := get(c, ctx, first, "a", "b")
						if (err != nil) != cancels || !cancels && strings.Join(got, ",") != "loaded a,loaded b" {
							t.Errorf("first: %q, %v", got, err)
						}
					}()
					synctest.Wait()
					got, err := get(c, t.Context(), second, "c", "b", "a")
					if err != nil || strings.Join(got, ",") != "loaded c,loaded b,loaded a" {
						t.Errorf("second: %q, %v", got, err)
					}
					want := []string{"c"}
					if cancels {
						want = []string{"c", "b a"}
					}
					if !slices.Equal(second.asked, want) {
						t.Errorf("the second is asked for %q, want %q", second.asked, want)
					}
					synctest.Wait()
				})
			})
		}
	}
}

// TestManyPanics: if load or f panics, other goroutines load the keys.
func TestManyPanics(t *testing.T) {
	c := newOf(t, &OfOptions[string, string]{})
	panics := func(f func()) {
		defer func() {
			if recover() != "no" {
				t.Error("no panic")
			}
		}()
		f()
	}
	b := &bulk{}
	panics(func() { getMany(c, t.Context(), &bulk{do: func() { panic("no") }}, "a", "b") })
	panics(func() {
		c.GetOrLoadMany(t.Context(), []string{"a", "b"}, b.load, func(int, EntryOf[string]) { panic("no") })
	})
	if got, err := getMany(c, t.Context(), b, "a", "b"); err != nil || strings.Join(got, ",") != "loaded a,loaded b" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestManyUncodable: a key or value that cannot be encoded costs only itself.
func TestManyUncodable(t *testing.T) {
	failure := errors.New("no")
	refuse := func(dst []byte, v string) ([]byte, error) {
		if v == "bad" || v == "loaded worse" {
			return nil, failure
		}
		return append(dst, v...), nil
	}
	codec := &Codec[string]{Append: refuse, Decode: func(b []byte) (string, error) { return string(b), nil }}
	c := newOf(t, &OfOptions[string, string]{Keys: codec, Values: codec})
	for _, keys := range []string{"a bad b", "a worse b"} {
		got, err := getMany(c, t.Context(), &bulk{}, strings.Fields(keys)...)
		if err != failure || strings.Join(got, ",") != "loaded a,,loaded b" {
			t.Errorf("%s = %q, %v", keys, got, err)
		}
	}
}

// TestManyRefresh: one goroutine loads all due keys of a call anew, and may outlive the caller's
// slice of keys.
func TestManyRefresh(t *testing.T) {
	for name, get := range many {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *Of[string, string]) {
				b := &bulk{do: func() { time.Sleep(time.Second) }}
				must(0, c.Set("l", "old"))
				time.Sleep(10 * time.Second)
				must(0, c.Set("new", "new"))
				keys := []string{"k", "l", "new"}
				if got, err := get(c, t.Context(), b, keys...); err != nil || strings.Join(got, ",") != "old,old,new" {
					t.Fatalf("%q, %v", got, err)
				}
				clear(keys)
				c.refreshes.wait()
				if got, err := get(c, t.Context(), b, "k", "l"); err != nil || strings.Join(got, ",") != "loaded k,loaded l" || !slices.Equal(b.asked, []string{"k l"}) {
					t.Fatalf("%q, %v; asked for %q", got, err, b.asked)
				}
			})
		})
	}
}

// TestLoadsAreNeverOlder: goroutines change a source, and then delete the key. Later calls get that
// state or a later one, whoever loads. This holds for values that are loaded anew too.
func TestLoadsAreNeverOlder(t *testing.T) {
	const keys, goroutines = 4, 8
	steps := 20_000
	if testing.Short() {
		steps = 2_000
	}
	c := NewOf(newHeap(t), &OfOptions[int, int64]{Options: Options{MaxBytes: 1 << 20, RefreshAfter: 1}})
	defer c.Close()
	var seconds atomic.Int64
	c.clock.coarse.Store(exact)
	c.clock.since = func(time.Time) time.Duration { return time.Duration(seconds.Load()) * time.Second }
	var source, deleted [keys]atomic.Int64
	load := func(k int) EntryOf[int64] { return EntryOf[int64]{Value: source[k].Load()} }
	together(goroutines, func(g int) {
		r := rand.New(rand.NewPCG(uint64(g), 3))
		for range steps {
			k := r.IntN(keys)
			switch r.IntN(4) {
			case 0:
				seconds.Add(1)
				v := source[k].Add(1)
				c.Delete(k)
				for old := deleted[k].Load(); old < v && !deleted[k].CompareAndSwap(old, v); old = deleted[k].Load() {
				}
			case 1:
				var least [keys]int64
				all := r.Perm(keys)
				for i, k := range all {
					least[i] = deleted[k].Load()
				}
				err := c.GetOrLoadMany(t.Context(), all, func(_ context.Context, missing []int) (map[int]EntryOf[int64], error) {
					found := map[int]EntryOf[int64]{}
					for _, k := range missing {
						found[k] = load(k)
					}
					return found, nil
				}, func(i int, e EntryOf[int64]) {
					if e.Value < least[i] {
						t.Errorf("%d after %d was deleted", e.Value, least[i])
					}
				})
				if err != nil {
					t.Error(err)
				}
			default:
				least := deleted[k].Load()
				v, err := c.GetOrLoad(t.Context(), k, func(context.Context) (EntryOf[int64], error) { return load(k), nil })
				if err != nil || v < least {
					t.Errorf("%d, %v after %d was deleted", v, err, least)
				}
			}
		}
	})
	c.refreshes.wait()
	c.check()
}

// TestCloseCancelsAllFirst: one refresh waits for another, which ends when its context does.
func TestCloseCancelsAllFirst(t *testing.T) {
	for range 20 { // Close waits for them in the order of a map
		inBubble(t, func(t *testing.T, c *Of[string, string]) {
			must(0, c.Set("l", "old"))
			time.Sleep(10 * time.Second)
			ended := make(chan bool)
			must(c.GetOrLoad(t.Context(), "k", func(ctx context.Context) (e EntryOf[string], err error) {
				<-ctx.Done()
				close(ended)
				return e, ctx.Err()
			}))
			must(c.GetOrLoad(t.Context(), "l", func(ctx context.Context) (e EntryOf[string], err error) {
				<-ended
				return e, ctx.Err()
			}))
			c.Close()
		})
	}
}

// TestCloseCancelsLaterOnes: a load begins another one while Close waits, and waits for it.
func TestCloseCancelsLaterOnes(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Of[string, string]) {
		must(0, c.Set("l", "old"))
		time.Sleep(10 * time.Second)
		must(c.GetOrLoad(t.Context(), "k", func(ctx context.Context) (e EntryOf[string], err error) {
			<-ctx.Done()
			ended := make(chan bool)
			must(c.GetOrLoad(ctx, "l", func(ctx context.Context) (e EntryOf[string], err error) {
				<-ctx.Done()
				close(ended)
				return e, ctx.Err()
			}))
			<-ended
			return e, ctx.Err()
		}))
		c.Close()
	})
}

// TestLoadsAfterClose: a goroutine waits for another one's load during Close. The load that it then
// begins itself is not stored.
func TestLoadsAfterClose(t *testing.T) {
	for _, size := range []int{1, 6 << 20} {
		synctest.Test(t, func(t *testing.T) {
			c := newCache(t, Options{MaxBytes: 16 << 20})
			ctx, cancel := context.WithCancel(t.Context())
			load := func(ctx context.Context) (Entry, error) { return Entry{Value: make([]byte, size)}, nil }
			go c.GetOrLoad(ctx, nil, []byte("k"), func(ctx context.Context) (Entry, error) {
				<-ctx.Done()
				return Entry{}, ctx.Err()
			})
			synctest.Wait()
			go func() {
				if v, err := c.GetOrLoad(t.Context(), nil, []byte("k"), load); len(v) != size || err != nil {
					t.Errorf("%d bytes, %v", len(v), err)
				}
			}()
			synctest.Wait()
			c.Close()
			cancel()
			synctest.Wait()
			if st := c.Stats(); st.Reserved != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}
