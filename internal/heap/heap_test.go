// Helpers of the tests, and tests of a heap as a whole.

package heap

import (
	"testing"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/poison"
)

// makeHeap returns a heap that is ready, as freehold.NewHeap makes one.
func makeHeap(o Options) *Heap {
	h := pin.New[Heap]()
	h.Init(o)
	return h
}

// newHeap returns a heap that is verified and closed at the end of the test.
func newHeap(t testing.TB, o Options) *Heap {
	if o.Decay == 0 {
		o.Decay = -1 // tests tick by hand
	}
	h := makeHeap(o)
	t.Cleanup(func() {
		if !h.pages.Closed.Load() && !t.Failed() {
			h.check(t)
			h.Close()
		}
	})
	return h
}

// check verifies the invariants of h. No other goroutine uses h.
func (h *Heap) check(t testing.TB) {
	t.Helper()
	if err := h.verify(); err != nil {
		t.Fatal(err)
	}
}

const never = time.Duration(1) << 50 // a decay whose timer does not fire here

func useAndFree(t *testing.T, h *Heap, size int) {
	t.Helper()
	b := alloc(t, h, size)
	b[0] = 1
	h.Free(b)
}

func alloc(t testing.TB, h *Heap, size int) []byte {
	t.Helper()
	b, err := h.Alloc(size, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var fill = poison.FillBytes

func allSet(b []byte, v byte) bool { return poison.Other(b, v) < 0 }

var panicOf = panics.Of

func TestGoodSize(t *testing.T) {
	h := newHeap(t, Options{})
	for _, tt := range [][2]int{{-5, 0}, {0, 0}, {1, 8}, {100, 112}, {32768, 32768}, {32769, 40960}, {1 << 20, 1 << 20}} {
		if got := h.GoodSize(tt[0]); got != tt[1] {
			t.Errorf("GoodSize(%d) = %d, want %d", tt[0], got, tt[1])
		}
	}
}

func TestOwns(t *testing.T) {
	h, other := newHeap(t, Options{}), newHeap(t, Options{})
	small, large := alloc(t, h, 10), alloc(t, h, 1<<20)
	for i, b := range [][]byte{small, large, small[3:], large[70000:]} {
		if !h.Owns(b) || other.Owns(b) {
			t.Errorf("slice %d: Owns is %v, the other's %v", i, h.Owns(b), other.Owns(b))
		}
	}
	if h.Owns(make([]byte, 10)) || h.Owns(nil) {
		t.Error("owns Go memory or nil")
	}
}

// Neither the fast paths, the slow ones nor large blocks allocate Go memory.
func TestNoGoHeapAllocations(t *testing.T) {
	if asan.Enabled {
		t.Skip("instrumented code allocates")
	}
	h := newHeap(t, Options{})
	for _, size := range []int{8, 64, 1000, 32768, 100000, 3 << 20} {
		live := make([][]byte, 100)
		if size == 64 {
			live = make([][]byte, 4000) // more than the caches hold
		}
		round := func() {
			for i := range live {
				live[i], _ = h.Alloc(size, 8, true)
			}
			for i := range live {
				h.Free(live[i])
			}
		}
		round()
		if n := testing.AllocsPerRun(20, round); n != 0 {
			t.Errorf("size %d: %v Go heap allocations in %d pairs", size, n, len(live))
		}
	}
}

// A heap without blocks takes little of the Go heap, beside its centrals and the
// slots of its caches.
func TestHeapIsSmall(t *testing.T) {
	if pin.Locked {
		t.Skip("slots are locks here, a cache line each")
	}
	const most = 9 << 10
	var h Heap
	if n := unsafe.Sizeof(h) - unsafe.Sizeof(h.small); n > most {
		t.Errorf("%d bytes, want %d at most", n, most)
	}
}
