package watch_test

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/watch"
)

// Pairs while blocks are sampled, at the default rate and all of them.
func BenchmarkPairSampled(b *testing.B) {
	for _, rate := range []int{watch.DefaultSampleRate, 1} {
		for _, size := range []int{64, 1 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("rate=%d/size=%d", rate, size), func(b *testing.B) {
				sampleAt(b, rate)
				pairs(b, size)
			})
		}
	}
}

func BenchmarkPairChecked(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			keepFreed(b, 1<<20)
			pairs(b, size)
		})
	}
}

// The budget's worst case is what GuardsPerSecond pairs take of a processor.
func BenchmarkPairGuarded(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("all/size=%d", size), func(b *testing.B) {
			guardAt(b, 1, 0)
			pairs(b, size)
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*watch.GuardsPerSecond*100, "%cpu")
		})
	}
	b.Run("parallel/size=64", func(b *testing.B) {
		guardAt(b, 1, 0)
		h := makeHeap()
		defer h.Close()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p, _ := h.Alloc(64, 8, false)
				p[0] = 1
				h.Free(p)
			}
		})
	})
	for _, size := range []int{64, 1 << 10} {
		b.Run(fmt.Sprintf("budget/size=%d", size), func(b *testing.B) {
			guardAt(b, 10000, watch.GuardsPerSecond)
			pairs(b, size)
		})
	}
}

func makeHeap() *Heap {
	h := pin.New[Heap]()
	h.Init(heap.Options{})
	return h
}

func pairs(b *testing.B, size int) {
	h := makeHeap()
	defer h.Close()
	for b.Loop() {
		p, _ := h.Alloc(size, 8, false)
		p[0] = 1
		h.Free(p)
	}
}
