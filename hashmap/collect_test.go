package hashmap

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/panics"
)

var collects = &Options{Collect: true}

// awaitCollected waits until the collector has closed n maps, and all memory of the heap is free.
func awaitCollected(t *testing.T, heap *freehold.Heap, n int) {
	t.Helper()
	for ended := time.Now().Add(time.Minute); ; runtime.GC() {
		st := heap.Stats()
		if st.Collected == uint64(n) && st.Live == 0 {
			return
		}
		if st.Collected > uint64(n) || time.Now().After(ended) {
			t.Fatalf("%d maps were collected of %d, and %d blocks live", st.Collected, n, st.Live)
		}
	}
}

// collectAll runs the collector until the cleanups of all unreachable objects have run.
func collectAll() {
	for range 2 {
		done := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(done chan struct{}) { close(done) }, done)
		for open := true; open; {
			runtime.GC()
			select {
			case <-done:
				open = false
			default:
			}
		}
	}
}

// Goroutines make, use and drop maps while the collector runs all the time. Each entry must stay
// until its last use, and all memory must be free in the end.
func TestCollect(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 2_000
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	stop := make(chan struct{})
	var collector, users sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	const goroutines = 4
	for g := range goroutines {
		users.Go(func() {
			for i := range n / goroutines {
				if i%2 == 0 {
					dropWords(t, heap, uint64(i))
				} else {
					dropTexts(t, heap, fmt.Sprint(g, i))
				}
			}
		})
	}
	users.Wait()
	close(stop)
	collector.Wait()
	awaitCollected(t, heap, n/goroutines*goroutines)
}

func dropWords(t *testing.T, heap *freehold.Heap, first uint64) {
	m := NewShared[uint64, [4]uint64](heap, collects)
	for k := first; k < first+40; k++ {
		succeed(m.Put(k, [4]uint64{k, k, k, k}))
	}
	m.Delete(first)
	for k := first + 1; k < first+40; k++ { // the last Get is the last use of m
		if v, ok := m.Get(k); !ok || v != [4]uint64{k, k, k, k} {
			t.Errorf("Get of %d: %v, %t", k, v, ok)
		}
	}
}

func dropTexts(t *testing.T, heap *freehold.Heap, key string) {
	m := NewShared[string, []byte](heap, collects)
	want := bytes.Repeat([]byte(key), 50)
	succeed(m.Put(key, want))
	succeed(m.Put(key, want))
	m.Delete("absent")
	if v, ok := m.Get(key); !ok || !bytes.Equal(v, want) {
		t.Errorf("Get of %q: %q, %t", key, v, ok)
	}
}

// A call that is the last use of its map keeps the map alive until it returns.
func TestCollectDuringTheLastCall(t *testing.T) {
	value := strings.Repeat("value", 1000)
	calls := map[string]func(m *Shared[string, string], see func(v string)){
		"View": func(m *Shared[string, string], see func(v string)) { m.View("key", see) },
		"Update": func(m *Shared[string, string], see func(v string)) {
			succeed(m.Update("key", func(v *string, _ bool) { see(*v) }))
		},
		"DeleteIf": func(m *Shared[string, string], see func(v string)) {
			m.DeleteIf("key", func(v string) bool { see(v); return true })
		},
		"All": func(m *Shared[string, string], see func(v string)) {
			m.All()(func(_, v string) bool { see(v); return true })
		},
		"Compute": func(m *Shared[string, string], see func(v string)) {
			m.Compute("key", func(v *string, _ bool) freehold.Change { see(*v); return freehold.Remove })
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			heap := freehold.NewHeap(nil)
			defer heap.Close()
			m := NewShared[string, string](heap, collects)
			succeed(m.Put("key", value))
			seen := false
			call(m, func(v string) {
				seen = true
				collectAll()
				if n := heap.Stats().Collected; n > 0 || v != value {
					t.Errorf("%d maps are collected while they are used", n)
				}
			})
			if !seen {
				t.Error("no entry")
			}
			awaitCollected(t, heap, 1)
		})
	}
}

// Neither a closed map counts as collected, nor a map whose heap is closed. The third map does.
func TestCollectBesideClose(t *testing.T) {
	heap, gone := freehold.NewHeap(nil), freehold.NewHeap(nil)
	defer heap.Close()
	for _, parent := range []freehold.Allocator{heap, gone, freehold.NewLimit(heap, 1<<20)} {
		m := NewShared[int, string](parent, collects)
		succeed(m.Put(1, "v"))
		if parent == freehold.Allocator(heap) {
			m.Close()
		}
	}
	gone.Close()
	awaitCollected(t, heap, 1)
}

// Options.Collect panics with a Map, and with a parent whose blocks may end before the map does.
func TestCollectMisuse(t *testing.T) {
	a := arena.NewShared(freehold.Default(), nil)
	defer a.Close()
	panics.Want(t, "freehold: hashmap.NewShared: Options.Collect with a parent...", func() { NewShared[int, int](a, collects) })
	panics.Want(t, "freehold: hashmap.New: Options.Collect is for a Shared...", func() { New[int, int](freehold.Default(), collects) })
}
