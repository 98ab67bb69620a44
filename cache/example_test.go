package cache_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

func Example() {
	sessions := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20, TTL: time.Hour})
	defer sessions.Close()

	if err := sessions.Set([]byte("id"), []byte("alice")); err != nil {
		fmt.Println(err)
	}
	if b, ok := sessions.Get(nil, []byte("id")); ok {
		fmt.Printf("%s\n", b)
	}
	sessions.View([]byte("id"), func(e cache.Entry) {
		fmt.Printf("%s, for %v\n", e.Value, e.TTL.Round(time.Minute))
	})
	// Output:
	// alice
	// alice, for 1h0m0s
}

func ExampleCache_GetOrLoad() {
	pages := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20})
	defer pages.Close()

	for range 2 {
		b, err := pages.GetOrLoad(context.Background(), nil, []byte("/"), func(context.Context) (cache.Entry, error) {
			fmt.Println("loading")
			return cache.Entry{Value: []byte("hello"), TTL: time.Minute}, nil
		})
		fmt.Printf("%s %v\n", b, err)
	}
	// Output:
	// loading
	// hello <nil>
	// hello <nil>
}

// The key's old value is returned while one goroutine loads a new one. The loader chooses the TTL.
func ExampleOptions_refreshAfter() {
	prices := cache.NewOf(freehold.Pages(), &cache.OfOptions[string, int]{Options: cache.Options{
		MaxBytes: 64 << 20, TTL: time.Hour, RefreshAfter: time.Minute,
	}})
	defer prices.Close()

	price, err := prices.GetOrLoad(context.Background(), "apple", func(ctx context.Context) (cache.EntryOf[int], error) {
		return cache.EntryOf[int]{Value: 3, TTL: 10 * time.Minute}, ctx.Err() // or cache.ErrNotFound
	})
	fmt.Println(price, err)
	// Output: 3 <nil>
}

// Each kind of entry has its own TTL, and a session lives for ten minutes after each read.
func ExampleOptions_expiry() {
	c := cache.NewOf(freehold.Pages(), &cache.OfOptions[string, string]{
		Options: cache.Options{MaxBytes: 64 << 20},
		Expiry: func(key string, e cache.EntryOf[string], read bool) time.Duration {
			switch {
			case strings.HasPrefix(key, "session "):
				return 10 * time.Minute
			case read: // of another kind: as before
				return e.TTL
			}
			return 24 * time.Hour
		},
	})
	defer c.Close()

	c.Set("session 1", "Ada")
	c.Set("picture 1", "...")
	for _, key := range []string{"session 1", "picture 1"} {
		c.View(key, func(e cache.EntryOf[string]) { fmt.Println(key, e.TTL.Round(time.Minute)) })
	}
	// Output:
	// session 1 10m0s
	// picture 1 24h0m0s
}

// An entry that stays while others are evicted.
func ExampleEntryOf_kept() {
	c := cache.New(freehold.Pages(), &cache.Options{MaxBytes: cache.MinBytes})
	defer c.Close()

	c.Put([]byte("config"), cache.Entry{Value: []byte("blue"), Kept: true})
	for i := range 10_000 {
		c.Set(fmt.Append(nil, i), make([]byte, 1000))
	}
	b, _ := c.Get(nil, []byte("config"))
	_, ok := c.Get(nil, []byte("0"))
	fmt.Printf("%s %t\n", b, ok)
	// Output: blue false
}

func ExampleOf_GetOrLoadMany() {
	names := cache.NewOf(freehold.Pages(), &cache.OfOptions[int, string]{
		Options: cache.Options{MaxBytes: 64 << 20, Negative: time.Minute},
	})
	defer names.Close()

	names.Set(1, "Ada")
	ids := []int{1, 2, 3}
	query := func(ctx context.Context, missing []int) (map[int]cache.EntryOf[string], error) {
		fmt.Println("loading", missing)
		return map[int]cache.EntryOf[string]{3: {Value: "Grace"}}, nil // 2 does not exist
	}
	for range 2 {
		err := names.GetOrLoadMany(context.Background(), ids, query, func(i int, e cache.EntryOf[string]) {
			fmt.Println(ids[i], e.Value)
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 1 Ada
	// loading [2 3]
	// 3 Grace
	// 1 Ada
	// 3 Grace
}

func ExampleCache_Update() {
	counts := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20})
	defer counts.Close()

	for range 3 {
		counts.Update([]byte("visits"), func(e *cache.Entry, found bool) cache.Change {
			// Append copies the old value, which must not be written to.
			e.Value = append(e.Value[:len(e.Value):len(e.Value)], '|')
			return cache.Store
		})
	}
	b, _ := counts.Get(nil, []byte("visits"))
	fmt.Printf("%s\n", b)
	// Output: |||
}

func ExampleOf() {
	type point struct{ X, Y float64 }
	places := cache.NewOf(freehold.Pages(), &cache.OfOptions[string, point]{Options: cache.Options{MaxBytes: 64 << 20}})
	defer places.Close()

	places.Set("home", point{1, 2})
	p, ok := places.Get("home")
	fmt.Println(p, ok)
	// Output: {1 2} true
}

func ExampleCache_GetMany() {
	users := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20})
	defer users.Close()

	users.Set([]byte("1"), []byte("Ada"))
	users.Set([]byte("3"), []byte("Grace"))
	names := make([]string, 3)
	users.GetMany([][]byte{[]byte("1"), []byte("2"), []byte("3")}, func(i int, e cache.Entry) {
		names[i] = string(e.Value) // a copy: the value is the cache's
	})
	fmt.Printf("%q\n", names)
	// Output: ["Ada" "" "Grace"]
}

// A change that another goroutine has not overtaken. Where one has, read and try again.
func ExampleCache_CompareAndSet() {
	carts := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20})
	defer carts.Close()

	key := []byte("cart")
	carts.Set(key, []byte("apple"))
	for done := false; !done; {
		var old cache.Entry
		carts.View(key, func(e cache.Entry) { old = e; old.Value = append([]byte(nil), e.Value...) })
		done, _ = carts.CompareAndSet(key, old.Version, cache.Entry{Value: append(old.Value, " pear"...)})
	}
	b, _ := carts.Get(nil, key)
	fmt.Printf("%s\n", b)
	// Output: apple pear
}

func ExampleOptions_onEvict() {
	evicted := 0
	c := cache.New(freehold.Pages(), &cache.Options{
		MaxBytes: cache.MinBytes,
		OnEvict: func(key []byte, e cache.Entry, why cache.Reason) {
			if why == cache.Room { // or Expired, or Shrunk
				evicted++
			}
		},
	})
	defer c.Close()

	for i := range 1000 {
		c.Set(fmt.Append(nil, i), make([]byte, 1000))
	}
	fmt.Println(evicted > 700, evicted == 1000-c.Len())
	// Output: true true
}

func ExampleCache_Snapshot() {
	o := &cache.Options{MaxBytes: 64 << 20}
	before := cache.New(freehold.Pages(), o)
	before.Set([]byte("id"), []byte("alice"))
	var saved bytes.Buffer // or SnapshotFile and RestoreFile
	if err := before.Snapshot(&saved); err != nil {
		fmt.Println(err)
	}
	before.Close()

	after := cache.New(freehold.Pages(), o)
	defer after.Close()
	if err := after.Restore(&saved); err != nil {
		fmt.Println(err)
	}
	b, _ := after.Get(nil, []byte("id"))
	fmt.Printf("%s\n", b)
	// Output: alice
}

// A type with pointers needs a Codec, here of JSON.
func ExampleNewOf_codec() {
	type user struct{ Name string }
	users := cache.NewOf(freehold.Pages(), &cache.OfOptions[int, user]{
		Options: cache.Options{MaxBytes: 64 << 20},
		Values:  cache.NewCodec[user](json.Marshal, json.Unmarshal),
	})
	defer users.Close()

	u, err := users.GetOrLoad(context.Background(), 1, func(context.Context) (cache.EntryOf[user], error) {
		return cache.EntryOf[user]{Value: user{"Ada"}}, nil
	})
	fmt.Println(u.Name, err)
	users.Update(1, func(e *cache.EntryOf[user], found bool) cache.Change {
		e.Value.Name += " Lovelace"
		return cache.Store
	})
	users.View(1, func(e cache.EntryOf[user]) { fmt.Println(e.Value.Name) })
	// Output:
	// Ada <nil>
	// Ada Lovelace
}

// A library's type often has no Close. Its cache is closed some time after the last use.
func ExampleOptions_collect() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	c := cache.New(heap, &cache.Options{MaxBytes: 1 << 20, Collect: true})
	c.Set([]byte("k"), []byte("v"))
	for heap.Stats().Collected == 0 { // only here, to see it
		runtime.GC()
	}
	fmt.Println(heap.Live(), "blocks are live")
	// Output: 0 blocks are live
}
