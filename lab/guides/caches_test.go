package guides

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/allegro/bigcache/v3"
	"github.com/coocood/freecache"
	"github.com/dgraph-io/ristretto/v2"
	"github.com/maypok86/otter/v2"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

func Example_bigcacheBefore() {
	o := bigcache.DefaultConfig(time.Hour) // how long entries stay, all of them
	o.HardMaxCacheSize = 256               // MB of values, beside which there are maps
	o.Verbose = false
	visits, err := bigcache.New(context.Background(), o)
	if err != nil {
		panic(err)
	}
	defer visits.Close()

	for _, page := range []string{"/a", "/b", "/c"} {
		if err := visits.Append("alice", []byte(page)); err != nil {
			panic(err)
		}
	}
	v, err := visits.Get("alice")
	fmt.Printf("%s %v\n", v, err == nil)
	_, err = visits.Get("bob")
	fmt.Println("bob:", !errors.Is(err, bigcache.ErrEntryNotFound))
	// Output:
	// /a/b/c true
	// bob: false
}

func Example_bigcacheAfter() {
	visits := cache.New(freehold.Pages(), &cache.Options{
		TTL:      time.Hour, // of those that are stored without a TTL of their own
		MaxBytes: 256 << 20, // all that the cache takes
	})
	defer visits.Close()

	for _, page := range []string{"/a", "/b", "/c"} {
		_, err := visits.Update([]byte("alice"), func(e *cache.Entry, found bool) cache.Change {
			e.Value = append(e.Value[:len(e.Value):len(e.Value)], page...) // a copy: the old value is the cache's
			return cache.Store
		})
		if err != nil {
			panic(err)
		}
	}
	v, found := visits.Get(nil, []byte("alice"))
	fmt.Printf("%s %v\n", v, found)
	_, found = visits.Get(nil, []byte("bob"))
	fmt.Println("bob:", found)
	// Output:
	// /a/b/c true
	// bob: false
}

func Example_freecacheBefore() {
	users := freecache.NewCache(64 << 20)
	load := func(id string) ([]byte, error) { fmt.Println("loading", id); return []byte("alice"), nil }
	find := func(id string) ([]byte, error) {
		if v, err := users.Get([]byte(id)); err == nil {
			return v, nil
		}
		v, err := load(id) // by each goroutine that asks meanwhile
		if err != nil {
			return nil, err
		}
		_ = users.Set([]byte(id), v, 3600) // an error above 1/1024 of the cache
		return v, nil
	}

	for range 2 {
		v, err := find("7")
		fmt.Printf("%s %v\n", v, err)
	}
	// Output:
	// loading 7
	// alice <nil>
	// alice <nil>
}

func Example_freecacheAfter() {
	users := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20, TTL: time.Hour})
	defer users.Close()
	load := func(id string) ([]byte, error) { fmt.Println("loading", id); return []byte("alice"), nil }
	find := func(id string) ([]byte, error) {
		return users.GetOrLoad(context.Background(), nil, []byte(id), func(context.Context) (cache.Entry, error) {
			v, err := load(id) // once for all that ask meanwhile
			return cache.Entry{Value: v}, err
		})
	}

	for range 2 {
		v, err := find("7")
		fmt.Printf("%s %v\n", v, err)
	}
	// Output:
	// loading 7
	// alice <nil>
	// alice <nil>
}

func Example_fastcacheBefore() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pages")

	pages := fastcache.New(64 << 20)
	pages.Set([]byte("/"), []byte("<h1>Hello</h1>"))
	pages.SetBig([]byte("/big"), make([]byte, 100_000)) // Set takes up to 64 KB
	if err := pages.SaveToFile(file); err != nil {
		panic(err)
	}
	pages.Reset()

	pages, err = fastcache.LoadFromFileMaxBytes(file, 64<<20)
	if err != nil {
		panic(err)
	}
	v, found := pages.HasGet(nil, []byte("/"))
	fmt.Printf("%s %v\n", v, found)
	fmt.Println(len(pages.GetBig(nil, []byte("/big"))))
	// Output:
	// <h1>Hello</h1> true
	// 100000
}

func Example_fastcacheAfter() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pages")

	pages := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20})
	err = errors.Join(
		pages.Set([]byte("/"), []byte("<h1>Hello</h1>")),
		pages.Set([]byte("/big"), make([]byte, 100_000)), // up to MaxEntry
		pages.SnapshotFile(file),
	)
	if err != nil {
		panic(err)
	}
	pages.Close()

	pages = cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20})
	defer pages.Close()
	if err := pages.RestoreFile(file); err != nil {
		panic(err)
	}
	v, found := pages.Get(nil, []byte("/"))
	fmt.Printf("%s %v\n", v, found)
	v, _ = pages.Get(nil, []byte("/big"))
	fmt.Println(len(v))
	// Output:
	// <h1>Hello</h1> true
	// 100000
}

func Example_otterBefore() {
	type point struct{ X, Y float64 }
	places := otter.Must(&otter.Options[string, point]{
		MaximumWeight:    64 << 20,
		Weigher:          func(name string, _ point) uint32 { return uint32(len(name)) + 16 },
		ExpiryCalculator: otter.ExpiryWriting[string, point](time.Hour),
	})
	defer places.StopAllGoroutines()

	for range 2 {
		p, err := places.Get(context.Background(), "home", otter.LoaderFunc[string, point](func(context.Context, string) (point, error) {
			fmt.Println("loading")
			return point{1, 2}, nil
		}))
		fmt.Println(p, err)
	}
	// Output:
	// loading
	// {1 2} <nil>
	// {1 2} <nil>
}

func Example_otterAfter() {
	type point struct{ X, Y float64 } // without Go pointers: its bytes are stored
	places := cache.NewOf(freehold.Pages(), &cache.OfOptions[string, point]{
		Options: cache.Options{MaxBytes: 64 << 20, TTL: time.Hour},
	})
	defer places.Close()

	for range 2 {
		p, err := places.GetOrLoad(context.Background(), "home", func(context.Context) (cache.EntryOf[point], error) {
			fmt.Println("loading")
			return cache.EntryOf[point]{Value: point{1, 2}}, nil
		})
		fmt.Println(p, err)
	}
	// Output:
	// loading
	// {1 2} <nil>
	// {1 2} <nil>
}

func Example_ristrettoBefore() {
	sessions, err := ristretto.NewCache(&ristretto.Config[string, []byte]{
		NumCounters: 1e6, // ten times the entries
		MaxCost:     64 << 20,
		BufferItems: 64,
	})
	if err != nil {
		panic(err)
	}
	defer sessions.Close()

	token := []byte("secret")
	if !sessions.SetWithTTL("alice", token, int64(len(token)), time.Hour) {
		fmt.Println("dropped") // too many calls of Set at once
	}
	sessions.Wait() // for a Get that follows to see it
	v, found := sessions.Get("alice")
	fmt.Printf("%s %v\n", v, found)
	sessions.Del("alice")
	_, found = sessions.Get("alice")
	fmt.Println(found)
	// Output:
	// secret true
	// false
}

func Example_ristrettoAfter() {
	sessions := cache.NewOf(freehold.Pages(), &cache.OfOptions[string, []byte]{
		Options: cache.Options{MaxBytes: 64 << 20},
	})
	defer sessions.Close()

	token := []byte("secret")
	if err := sessions.SetTTL("alice", token, time.Hour); err != nil {
		fmt.Println(err) // it is larger than MaxEntry, or the parent refused
	}
	v, found := sessions.Get("alice")
	fmt.Printf("%s %v\n", v, found)
	sessions.Delete("alice")
	_, found = sessions.Get("alice")
	fmt.Println(found)
	// Output:
	// secret true
	// false
}
