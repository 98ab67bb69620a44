package disk

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// BenchmarkRead reads records of a file of 1 GiB by 16 goroutines, each record once.
func BenchmarkRead(b *testing.B) {
	const goroutines = 16
	for _, size := range []int{1000, 4096} {
		for _, threads := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%d/threads=%v", size, threads), func(b *testing.B) {
				s, _, err := Open(Options{Dir: b.TempDir(), MaxBytes: 1100 << 20, Parent: freehold.Default(), Owner: newIndex(), threads: threads})
				filetest.Must(b, err)
				defer s.Close(nil)
				var places []Place
				for value := make([]byte, size); len(places) < 1<<30/Size(20, size); {
					at, ok := s.Append(&Record{Key: fmt.Appendf(nil, "key-%016d", len(places)), Value: value})
					if ok {
						places = append(places, at)
					} else {
						runtime.Gosched()
					}
				}
				order := rand.Perm(len(places))
				var mu sync.Mutex
				var all []time.Duration
				next := 0
				b.SetParallelism(goroutines / runtime.GOMAXPROCS(0))
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					var took []time.Duration
					dst := make([]byte, 0, size)
					for pb.Next() {
						mu.Lock()
						i := order[next%len(order)]
						next++
						mu.Unlock()
						key := fmt.Appendf(nil, "key-%016d", i)
						began := time.Now()
						if _, _, err := s.Read(dst, places[i], Size(20, size), key); err != nil {
							b.Error(err)
						}
						took = append(took, time.Since(began))
					}
					mu.Lock()
					defer mu.Unlock()
					all = append(all, took...)
				})
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
			})
		}
	}
}
