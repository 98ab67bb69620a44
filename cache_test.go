package freehold_test

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func TestCacheConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		h := freehold.NewHeap(nil)
		c := h.NewCache()
		t.Cleanup(func() {
			c.Close()
			if n := h.Live(); n != 0 {
				t.Errorf("%d blocks are left", n)
			}
			h.Close()
		})
		return c
	}, &alloctest.Options{Detects: alloctest.AllMistakes})
}

func ExampleHeap_NewCache() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	cache := heap.NewCache() // this goroutine's
	defer cache.Close()

	b, err := cache.Alloc(100, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	heap.Free(b) // a cache's blocks are the heap's
	fmt.Println(len(b), heap.Owns(b))
	// Output: 100 true
}

func BenchmarkCache(b *testing.B) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	c := h.NewCache()
	defer c.Close()
	for _, bb := range []struct {
		name string
		a    freehold.Allocator
	}{{"heap", h}, {"cache", c}} {
		b.Run("impl="+bb.name, func(b *testing.B) {
			for b.Loop() {
				p, _ := bb.a.Alloc(64, 8)
				p[0] = 1
				bb.a.Free(p)
			}
		})
	}
}
