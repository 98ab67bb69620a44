package cache_test

import (
	"context"
	"fmt"
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

func ExampleCache_Update() {
	counts := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 64 << 20})
	defer counts.Close()

	for range 3 {
		counts.Update([]byte("visits"), func(e *cache.Entry, found bool) cache.Change {
			e.Value = append(e.Value[:len(e.Value):len(e.Value)], '|') // a copy: the old value is not to be written to
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
