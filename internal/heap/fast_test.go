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

// Whatever stops the world, interrupts goroutines or moves them between processors, a cache
// has one user at a time: no block has two owners, and none is lost.
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
	pest(2*time.Millisecond, func(n int) { runtime.GOMAXPROCS(1 + n%7) })
	pest(time.Millisecond, func(int) { runtime.GC() })
	pest(20*time.Millisecond, func(int) { debug.FreeOSMemory() })
	pest(100*time.Microsecond, func(int) { h.Trim() })
	pest(time.Millisecond, func(int) { h.Tick(); h.Stats() })

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
			for range rounds {
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
	if st := h.Stats(); st.Allocated != 0 {
		t.Errorf("in use at the end: %+v", st)
	}
}

// Zeroed clears used memory of every size, and nothing beside it.
func TestZeroedClearsTheBlockAndNothingElse(t *testing.T) {
	h := heap.NewHeap(t, heap.Options{})
	for size := 1; size <= 300; size++ {
		var live [8][]byte
		for i := range live {
			live[i], _ = h.Alloc(size, 8, false)
			for j := range live[i] {
				live[i][j] = 0xAA
			}
		}
		h.Free(live[3])
		z, err := h.Alloc(size, 8, true)
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range z {
			if v != 0 {
				t.Fatalf("byte %d of a zeroed block of %d holds %#x", j, size, v)
			}
		}
		live[3] = z
		for i, b := range live {
			for j, v := range b {
				if i != 3 && v != 0xAA {
					t.Fatalf("byte %d of a block of %d beside a zeroed one holds %#x", j, size, v)
				}
			}
			h.Free(b)
		}
	}
}
