package cache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/collect"
)

// TestCollect drops caches while others are made and used, and while the collector runs all the
// time. Each value must stay until its last use, and all memory must be free in the end.
func TestCollect(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 3_000
	}
	heap := freehold.NewHeap(nil)
	t.Cleanup(heap.Close)
	const goroutines = 4
	collect.During(func() {
		var users sync.WaitGroup
		for g := range goroutines {
			users.Go(func() {
				for i := range n / goroutines {
					key := fmt.Append(nil, g, i)
					value := bytes.Repeat(key, 1+i%200)
					c := New(heap, &Options{MaxBytes: MinBytes, Collect: true})
					must(0, c.Set(key, value))
					if i%16 == 0 {
						c.View(key, func(e Entry) {
							runtime.Gosched()
							if !bytes.Equal(e.Value, value) {
								t.Error("View has other bytes")
							}
						})
					}
					if got, ok := c.Get(nil, key); !ok || !bytes.Equal(got, value) { // the last use
						t.Errorf("Get has %d bytes, want %d", len(got), len(value))
					}
				}
			})
		}
		users.Wait()
	})
	collect.Await(t, heap, n/goroutines*goroutines)
}

// A call that is the last use of its cache keeps the cache until the call has returned.
func TestCollectDuringTheLastCall(t *testing.T) {
	key, value := []byte("key"), bytes.Repeat([]byte("value"), 1000)
	calls := map[string]func(c *Cache, see func(e Entry)){
		"View":    func(c *Cache, see func(e Entry)) { c.View(key, see) },
		"Peek":    func(c *Cache, see func(e Entry)) { c.Peek(key, see) },
		"GetMany": func(c *Cache, see func(e Entry)) { c.GetMany([][]byte{key}, func(_ int, e Entry) { see(e) }) },
		"Update": func(c *Cache, see func(e Entry)) {
			must(c.Update(key, func(e *Entry, _ bool) Change { see(*e); return Remove }))
		},
		"All": func(c *Cache, see func(e Entry)) {
			for _, e := range c.All() {
				see(e)
			}
		},
		"lookUp": func(c *Cache, see func(e Entry)) {
			c.lookUp("", c.seed.Bytes(key), key, func(e Entry) error { see(e); return nil }, true)
		},
		"GetOrLoad": func(c *Cache, see func(e Entry)) {
			c.GetOrLoad(context.Background(), nil, []byte("other"), func(context.Context) (Entry, error) {
				see(Entry{Value: value})
				return Entry{Value: value}, nil
			})
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			heap := freehold.NewHeap(nil)
			t.Cleanup(heap.Close)
			c := New(heap, &Options{MaxBytes: MinBytes, Collect: true})
			must(0, c.Set(key, value))
			seen := false
			call(c, func(e Entry) {
				seen = true
				collect.All()
				if n := heap.Stats().Collected; n > 0 || !bytes.Equal(e.Value, value) {
					t.Errorf("%d caches are collected while they are used", n)
				}
			})
			if !seen {
				t.Error("no entry")
			}
			collect.Await(t, heap, 1)
		})
	}
}

// What refers to a cache weakly does not keep it, and a cache that was closed is not collected.
func TestCollectBesideOthers(t *testing.T) {
	heap := freehold.NewHeap(nil)
	t.Cleanup(heap.Close)
	b := freehold.Must(budget.Start(&budget.Options{Limit: 1 << 30}))
	defer b.Stop()
	c := New(freehold.NewLimit(heap, 1<<20), &Options{MaxBytes: MinBytes, Collect: true, Budget: b})
	must(0, c.Set([]byte("k"), []byte("v")))
	o := NewOf[string, string](heap, &OfOptions[string, string]{Options: Options{MaxBytes: MinBytes, Collect: true}})
	must(0, o.Set("k", "v"))
	closed := New(heap, &Options{MaxBytes: MinBytes, Collect: true})
	must(0, closed.Set([]byte("k"), []byte("v")))
	closed.Close()
	AllStats()
	runtime.KeepAlive(c)
	runtime.KeepAlive(o)
	collect.Await(t, heap, 2)
}

// A heap may be closed before the collector finds a cache, which then has nothing to free.
func TestCollectAfterTheHeap(t *testing.T) {
	heap := freehold.NewHeap(nil)
	c := New(heap, &Options{MaxBytes: MinBytes, Collect: true})
	must(0, c.Set([]byte("k"), []byte("v")))
	heap.Close()
	panics.Want(t, "freehold: cache.Cache.Get: heap ... is closed", func() { c.Get(nil, []byte("k")) })
	collect.All()
}

// The blocks of an arena may end before the collector frees them. A cache that New refuses is not
// reported as dropped.
func TestCollectNeedsBlocksThatStay(t *testing.T) {
	defer owners.WatchTo(io.Discard)()
	a := arena.NewShared(freehold.Default(), nil)
	defer a.Close()
	for _, parent := range []freehold.Allocator{a, freehold.NewLimit(a, 1<<20), freehold.NewFallback(freehold.Default(), a)} {
		panics.Want(t, "freehold: cache.New: Options.Collect with a parent...", func() { New(parent, &Options{MaxBytes: MinBytes, Collect: true}) })
	}
	owners.Collect()
	if all := owners.All(); len(all) > 0 {
		t.Errorf("dropped: %v", all)
	}
}
