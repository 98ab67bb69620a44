package hashmap_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/hashmap"
)

func ExampleShared() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	hits := hashmap.NewShared[string, int](heap, nil)
	defer hits.Close()

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, path := range []string{"/", "/about", "/"} {
				if err := hits.Update(path, func(n *int, _ bool) { *n++ }); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	n, found := hits.Get("/")
	fmt.Println(n, found, hits.Len())
	// Output: 8 true 2
}

// Sessions expire while others renew them: DeleteIf looks again under the lock.
func ExampleShared_DeleteIf() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	sessions := hashmap.NewShared[string, int64](heap, nil) // the time that each ends
	defer sessions.Close()
	for end, user := range []string{"ann", "bob", "eve"} {
		if err := sessions.Put(user, int64(end)); err != nil {
			panic(err)
		}
	}

	now := int64(1)
	expired := func(end int64) bool { return end <= now }
	for user, end := range sessions.All() {
		if user == "bob" { // who returns while the loop runs
			_ = sessions.Put(user, now+60)
		}
		if expired(end) {
			sessions.DeleteIf(user, expired)
		}
	}
	_, bob := sessions.Get("bob")
	fmt.Println(sessions.Len(), bob)
	// Output: 2 true
}

// View reads a page where it is, and AppendTo copies it into memory that the caller has.
func ExampleShared_View() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	pages := hashmap.NewShared[string, []byte](heap, nil)
	defer pages.Close()
	if err := pages.Put("/", []byte("<h1>Hello</h1>")); err != nil {
		panic(err)
	}

	pages.View("/", func(page []byte) { os.Stdout.Write(page) })
	reply := make([]byte, 0, 1<<10)
	reply, found := pages.AppendTo(append(reply, "\n200 OK\n"...), "/")
	fmt.Println(string(reply), found)
	// Output:
	// <h1>Hello</h1>
	// 200 OK
	// <h1>Hello</h1> true
}

// No other call sees the map between the look at a value and its change.
func ExampleShared_Update() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	seats := hashmap.NewShared[string, int](heap, nil)
	defer seats.Close()
	if err := seats.Put("flight 1", 3); err != nil {
		panic(err)
	}

	var booked atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := seats.Update("flight 1", func(left *int, found bool) {
				if found && *left > 0 {
					*left--
					booked.Add(1)
				}
			})
			if err != nil {
				panic(err)
			}
		})
	}
	wg.Wait()
	left, _ := seats.Get("flight 1")
	fmt.Println(booked.Load(), "booked,", left, "left")
	// Output: 3 booked, 0 left
}

// Keys that are parts of a buffer are copied only where they are new.
func ExampleUpdateSharedBytes() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	hits := hashmap.NewShared[string, int](heap, nil)
	defer hits.Close()

	line := []byte("GET /")
	for range 2 {
		err := hashmap.UpdateSharedBytes(hits, line[:3], func(n *int, found bool) { *n++ })
		if err != nil {
			panic(err)
		}
	}
	copy(line, "PUT")
	fmt.Println(hashmap.GetSharedBytes(hits, []byte("GET")))
	// Output: 2 true
}

// Compute takes a lease if no other owner has it, and removes it with its last use.
func ExampleShared_Compute() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	type lease struct{ owner, count int }
	leases := hashmap.NewShared[string, lease](heap, nil)
	defer leases.Close()

	acquire := func(owner int) func(*lease, bool) freehold.Change {
		return func(l *lease, found bool) freehold.Change {
			if found && l.owner != owner {
				return freehold.Keep
			}
			l.owner = owner
			l.count++
			return freehold.Store
		}
	}
	release := func(l *lease, found bool) freehold.Change {
		if l.count--; !found || l.count == 0 {
			return freehold.Remove
		}
		return freehold.Store
	}
	for _, f := range []func(*lease, bool) freehold.Change{acquire(1), acquire(1), acquire(2), release, release, acquire(2)} {
		old, found, err := leases.Compute("log", f)
		if err != nil {
			panic(err)
		}
		fmt.Println(old, found)
	}
	// Output:
	// {0 0} false
	// {1 1} true
	// {1 2} true
	// {1 2} true
	// {1 1} true
	// {0 0} false
}
