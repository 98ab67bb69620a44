//go:build !race && !freehold_portable && !freehold_debug

package heap

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

// The assembly serves processors beyond the first slots of a table that has more.
func TestSlotsBeyondTheFirst(t *testing.T) {
	if !pin.Known() {
		t.Skip("no assembly")
	}
	const procs = 4 * pin.FirstSlots
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	h := newHeap(t, Options{})

	var slow [3]atomic.Int64 // calls of each in Go
	was := plain
	defer func() { plain = was }()
	plain.alloc = func(h *Heap, size, align int, zero bool) ([]byte, error) {
		slow[0].Add(1)
		return was.alloc(h, size, align, zero)
	}
	plain.free = func(h *Heap, b []byte) { slow[1].Add(1); was.free(h, b) }
	plain.freePointer = func(h *Heap, p unsafe.Pointer) { slow[2].Add(1); was.freePointer(h, p) }
	const rounds = 5_000
	var n atomic.Int64 // rounds beyond the first slots
	var wg sync.WaitGroup
	for range procs { // busy, so that all processors come to run
		wg.Go(func() {
			for n.Load() < rounds {
				slot := h.caches.Enter()
				h.caches.Leave(slot)
				if slot < pin.FirstSlots {
					runtime.Gosched()
					continue
				}
				n.Add(1)
				h.Free(alloc(t, h, 64))
				h.FreePointer(unsafe.Pointer(&alloc(t, h, 64)[0]))
			}
		})
	}
	wg.Wait()
	for i, name := range []string{"alloc", "free", "freePointer"} {
		if n := slow[i].Load(); n > rounds/2 {
			t.Errorf("%d calls of %s in Go in %d rounds", n, name, rounds)
		}
	}
}
