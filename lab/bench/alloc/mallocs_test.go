// Mallocs: Go heap allocations per round of freehold's calls, for which the promise is 0.

//go:build !peer || peer_interface

package alloc

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/lab/bench/measure"
)

func BenchmarkGoMallocs(b *testing.B) {
	type node struct {
		key, value uint64
		next       freehold.Ptr[node]
	}
	measure.Run(b, "", peer, func(b *testing.B) {
		i := 0
		b.ReportMetric(testing.AllocsPerRun(100_000, func() {
			i++
			for _, get := range []func(int) (block, error){alloc, zeroed} {
				b := must(get(1 << (4 + i%9)))
				touch(b)
				free(b)
			}
			p := must(freehold.New[node](heap))
			p.key = uint64(i)
			freehold.Free(heap, p)

			s := must(freehold.MakeSlice[uint64](heap, 1+i%100))
			s[0] = uint64(i)
			freehold.FreeSlice(heap, s)
		}), "mallocs/op")
		b.ReportMetric(0, "ns/op")
	})
}
