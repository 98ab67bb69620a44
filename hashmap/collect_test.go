package hashmap

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/collect"
	"github.com/freehold-go/freehold/internal/vm"
)

var collects = &Options{Collect: true}

// Goroutines make, use and drop maps while the collector runs all the time. Each entry must stay
// until its last use, and all memory must be free in the end.
func TestCollect(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 2_000
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	const goroutines = 4
	collect.During(func() {
		var users sync.WaitGroup
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
	})
	collect.Await(t, heap, n/goroutines*goroutines)
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
				collect.All()
				if n := heap.Stats().Collected; n > 0 || v != value {
					t.Errorf("%d maps are collected while they are used", n)
				}
			})
			if !seen {
				t.Error("no entry")
			}
			collect.Await(t, heap, 1)
		})
	}
}

// A goroutine that populates a page keeps the map, whose memory the page is.
func TestCollectWhileAPageIsPopulated(t *testing.T) {
	twoProcessors(t)
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	begun, resident := make(chan struct{}), make(chan struct{})
	open := withHuge(func(parent freehold.Allocator, _ uint64) subject[uint64, uint64] {
		return NewShared[uint64, uint64](parent, collects)
	}, func(_ []byte, a vm.Advice) error {
		if a == vm.Populate {
			close(begun)
			<-resident
		}
		return nil
	})
	put(t, open(heap, 0), 0, 2000, false)
	<-begun
	collect.All()
	if n := heap.Stats().Collected; n > 0 {
		t.Errorf("%d maps are collected while their page is populated", n)
	}
	close(resident)
	collect.Await(t, heap, 1)
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
	collect.Await(t, heap, 1)
}

// The collector closes a map whose parent is made of two heaps. Both count it.
func TestCollectOnTwoHeaps(t *testing.T) {
	first, second := freehold.NewHeap(nil), freehold.NewHeap(nil)
	defer first.Close()
	defer second.Close()
	m := NewShared[int, string](freehold.NewFallback(freehold.NewLimit(first, 1<<10), second), collects)
	succeed(m.Put(1, strings.Repeat("v", 1<<10)))
	if first.Stats().Live == 0 || second.Stats().Live == 0 {
		t.Error("not both heaps have blocks")
	}
	collect.Await(t, first, 1)
	collect.Await(t, second, 1)
}

// Options.Collect panics with a Map, and with a parent whose blocks may end before the map does.
func TestCollectMisuse(t *testing.T) {
	a := arena.NewShared(freehold.Default(), nil)
	defer a.Close()
	panics.Want(t, "freehold: hashmap.NewShared: Options.Collect with a parent...", func() { NewShared[int, int](a, collects) })
	panics.Want(t, "freehold: hashmap.New: Options.Collect is for a Shared...", func() { New[int, int](freehold.Default(), collects) })
}
