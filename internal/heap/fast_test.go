package heap_test

import (
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/watch"
)

// alloc and free keep every promise by themselves, without the assembly.
func TestConformancePlain(t *testing.T) { conformPlain(t) }

// They do with pins too.
func TestConformancePinned(t *testing.T) {
	heap.Pin(t)
	conformPlain(t)
}

func conformPlain(t *testing.T) {
	heap.EachRate(t, func(t *testing.T) {
		alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
			return heap.PlainAdapter{Adapter: heap.Adapter{Heap: heap.NewHeap(t, heap.Options{})}}
		}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
	})
}

// A cache has one user at a time, whatever stops the world, interrupts goroutines or moves them
// between processors: no block has two owners, and none is lost. Blocks become watched meanwhile.
func TestCachesHaveOneUser(t *testing.T) {
	t.Run("called", func(t *testing.T) {
		cachesHaveOneUser(t, func(h *heap.Heap) freehold.Allocator { return heap.Adapter{Heap: h} })
	})
	t.Run("plain", func(t *testing.T) {
		cachesHaveOneUser(t, func(h *heap.Heap) freehold.Allocator { return heap.PlainAdapter{Adapter: heap.Adapter{Heap: h}} })
	})
}

func cachesHaveOneUser(t *testing.T, of func(h *heap.Heap) freehold.Allocator) {
	rounds := 5000
	if testing.Short() {
		rounds = 150
	}
	if pprof.StartCPUProfile(io.Discard) == nil { // for its signals
		defer pprof.StopCPUProfile()
	}
	heap.SampleAt(t, 0) // restores the rates
	heap.GuardAt(t, 0)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	h := heap.NewHeap(t, heap.Options{Decay: time.Millisecond})
	a := of(h)
	var done atomic.Bool

	var wg, pests sync.WaitGroup
	pest := func(pause time.Duration, f func(n int)) {
		pests.Go(func() {
			for n := 0; !done.Load(); n++ {
				f(n)
				time.Sleep(pause)
			}
		})
	}
	pest(2*time.Millisecond, func(n int) { runtime.GOMAXPROCS([]int{8, 1, 4, 70, 2}[n%5]) }) // 70 is more than the table has
	pest(time.Millisecond, func(int) { runtime.GC() })
	pest(20*time.Millisecond, func(int) { debug.FreeOSMemory() })
	pest(100*time.Microsecond, func(int) { h.Trim() })
	pest(time.Millisecond, func(int) { h.Tick() })
	pest(time.Millisecond, func(int) {
		if st := h.Stats(); st.Allocated < 0 || st.Resident < 0 || st.Active < 0 {
			t.Errorf("%+v", st)
		}
	})
	pest(3*time.Millisecond, func(n int) { watch.SetSampleRate([]int{0, 200, 0, 1}[n%4]) })
	pest(5*time.Millisecond, func(n int) { watch.SetGuardRate([]int{0, 0, 1, 2}[n%4], 0) })

	passed := make(chan []byte, 64)
	for seed := range uint64(8) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 3))
			var live [200][]byte
			free := func(b []byte) {
				if !heap.AllSet(b, byte(len(b))) {
					t.Errorf("a block of %d bytes holds %x", len(b), b)
				}
				clear(b)
				a.Free(b)
			}
			for round := range rounds {
				if round%50 == 0 {
					alloctest.RunProgram(t, a, program(r, 250))
				}
				for range 100 {
					i := r.IntN(len(live))
					if live[i] != nil {
						free(live[i])
					}
					size, align := 1+r.IntN(256), 1<<r.IntN(7)
					alloc := a.Alloc
					if i%2 == 0 {
						alloc = a.Zeroed
					}
					b, err := alloc(size, align)
					if err != nil {
						t.Error(err)
						return
					}
					if i%2 == 0 && !heap.AllSet(b, 0) {
						t.Errorf("a zeroed block of %d bytes holds %x", len(b), b)
						return
					}
					heap.Fill(b, byte(len(b)))
					live[i] = b
				}
				select {
				case passed <- live[0]:
					live[0] = nil
				case b := <-passed:
					if b != nil {
						free(b)
					}
				}
			}
			for _, b := range live {
				if b != nil {
					free(b)
				}
			}
		})
	}
	wg.Wait()
	done.Store(true)
	pests.Wait()
	close(passed)
	for b := range passed {
		if b != nil {
			h.Free(b)
		}
	}
	heap.Check(h, t)
	h.Trim()
	heap.Check(h, t)
	if st := h.Stats(); st.Allocated != 0 || st.Active != 0 {
		t.Errorf("in use at the end: %+v", st)
	}
}
