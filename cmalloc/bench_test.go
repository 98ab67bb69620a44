package cmalloc_test

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmalloc"
)

// BenchmarkPair is Alloc, a touch, and Free, beside freehold.Heap.
func BenchmarkPair(b *testing.B) {
	own := freehold.NewHeap(nil)
	defer own.Close()
	c, err := cmalloc.New()
	if err != nil {
		b.Skip(err)
	}
	name, _ := cmalloc.Implementation()
	for _, a := range []struct {
		name string
		freehold.Allocator
	}{{"freehold", own}, {name, c}} {
		for _, size := range []int{16, 64, 4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("malloc=%s/size=%d", a.name, size), func(b *testing.B) {
				for b.Loop() {
					x, _ := a.Alloc(size, 8)
					x[0] = 1
					a.Free(x)
				}
			})
			b.Run(fmt.Sprintf("malloc=%s/size=%d/parallel", a.name, size), func(b *testing.B) {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						x, _ := a.Alloc(size, 8)
						x[0] = 1
						a.Free(x)
					}
				})
			})
		}
	}
}

func BenchmarkStats(b *testing.B) {
	c, err := cmalloc.New()
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		c.Stats()
	}
}
