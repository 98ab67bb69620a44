// Benchmarks of parts of the heap. Those of its calls, beside its peers, are in lab/bench.

package heap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/small"
)

// Blocks of 40 to 256 KiB. Each goroutine has a few and replaces one at random.
func BenchmarkMixedLarge(b *testing.B) {
	for _, blocks := range []int{20, 1000} {
		b.Run(fmt.Sprintf("live=%d", blocks), func(b *testing.B) {
			h := makeHeap(Options{})
			defer h.Close()
			var seed, committed atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				r := rand.New(rand.NewPCG(seed.Add(1), 0))
				live := make([][]byte, blocks)
				for pb.Next() {
					i := r.IntN(blocks)
					h.Free(live[i])
					live[i], _ = h.Alloc(40<<10+r.IntN(216<<10), 8, false)
					live[i][0] = 1
				}
				st := h.Stats()
				committed.CompareAndSwap(0, uint64(1000*st.Committed/max(st.Allocated, 1))) // the first to end
				for _, p := range live {
					h.Free(p)
				}
			})
			b.ReportMetric(float64(committed.Load())/1000, "committed/live")
		})
	}
}

// A pair of Alloc and Free by the Go code alone: leaves, or functions with a pin.
func BenchmarkPairPlain(b *testing.B) {
	b.Run("path=leaf", pairPlain)
	b.Run("path=pin", func(b *testing.B) {
		Pin(b)
		pairPlain(b)
	})
}

func pairPlain(b *testing.B) {
	h := makeHeap(Options{})
	defer h.Close()
	for _, zero := range []bool{false, true} {
		b.Run(fmt.Sprintf("call=Free/zero=%t", zero), func(b *testing.B) {
			for b.Loop() {
				p, _ := inGo.alloc(h, 64, 8, zero)
				p[0] = 1
				inGo.free(h, p)
			}
		})
	}
	b.Run("call=FreePointer", func(b *testing.B) {
		for b.Loop() {
			p, _ := inGo.alloc(h, 64, 8, false)
			p[0] = 1
			inGo.freePointer(h, unsafe.Pointer(&p[0]))
		}
	})
}

// Goroutines that each have blocks of mixed sizes, a third to all of some number of them. A pair of
// each is one operation.
func BenchmarkLocal(b *testing.B) {
	for _, goroutines := range []int{1, 2} {
		for _, most := range []int{3000, 10000, 100000} {
			b.Run(fmt.Sprintf("goroutines=%d/live=%d", goroutines, most), func(b *testing.B) {
				h := makeHeap(Options{})
				defer h.Close()
				var ready, done sync.WaitGroup
				start := make(chan bool)
				ready.Add(goroutines)
				for g := range goroutines {
					done.Go(func() {
						r := rand.New(rand.NewPCG(uint64(g), 0))
						var live [][]byte
						add := func() {
							p, _ := h.Alloc(16+r.IntN(1024), 8, false)
							p[0] = 1
							live = append(live, p)
						}
						for range most {
							add()
						}
						ready.Done()
						<-start
						grows := false
						for range 2 * b.N {
							if n := len(live); n <= most/3 || n >= most {
								grows = n < most
							}
							if grows {
								add()
								continue
							}
							last := len(live) - 1
							p := &live[r.IntN(last+1)]
							h.Free(*p)
							*p, live = live[last], live[:last]
						}
					})
				}
				ready.Wait()
				b.ResetTimer()
				close(start)
				done.Wait()
				b.ReportMetric(float64(h.Stats().Committed)/1e6/float64(goroutines), "MB/goroutine")
			})
		}
	}
}

// Calls that exchange a magazine with a depot, and hold its lock for nearly as long. One goroutine
// makes all calls, or two take turns: one allocates and the other frees. The cost of taking turns,
// about a transfer, is subtracted and reported separately.
func BenchmarkExchange(b *testing.B) {
	for _, goroutines := range []int{1, 2} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			h := makeHeap(Options{})
			defer h.Close()
			class, at := small.ClassFor(64, 1), uintptr(0)
			calls := [...]func(){
				func() { at, _, _ = h.small.AllocFromDepot(&h.caches, class, 0, 64) },
				func() { h.small.FreeToDepot(&h.caches, class, 0, block(at, 64, false)) },
			}
			const turns = 1000 // without a call, and then as many with one
			var turn atomic.Int64
			var done sync.WaitGroup
			var times [2][]int64
			for g := range goroutines {
				done.Go(func() {
					begin := time.Now()
					for i := g; i < b.N; i += goroutines {
						for turn.Load() != int64(i) {
						}
						round := i / turns
						if i%turns == 0 {
							now := time.Now()
							times[(round+1)%2] = append(times[(round+1)%2], int64(now.Sub(begin)))
							begin = now
						}
						if round%2 == 1 {
							calls[i%2]()
						}
						turn.Store(int64(i) + 1)
					}
				})
			}
			done.Wait()
			median := func(times []int64) float64 {
				slices.Sort(times)
				return float64(times[len(times)/2]) / turns
			}
			if len(times[0]) > 0 {
				b.ReportMetric(median(times[0]), "ns/turn")
				b.ReportMetric(median(times[1])-median(times[0]), "ns/exchange")
			}
		})
	}
}
