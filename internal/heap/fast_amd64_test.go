//go:build !race && !freehold_portable && !asan && !freehold_debug

package heap

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin/pintest"
)

func TestSlotsBeyondTheFirst(t *testing.T) {
	pintest.SlotsBeyondTheFirst(t, func(slow func(call string)) (calls func()) {
		h := newHeap(t, Options{})
		was := plain
		t.Cleanup(func() { plain = was })
		plain.alloc = func(h *Heap, size, align int, zero bool) ([]byte, error) {
			slow("alloc")
			return was.alloc(h, size, align, zero)
		}
		plain.free = func(h *Heap, b []byte) { slow("free"); was.free(h, b) }
		plain.freePointer = func(h *Heap, p unsafe.Pointer) { slow("freePointer"); was.freePointer(h, p) }
		return func() {
			h.Free(alloc(t, h, 64))
			h.FreePointer(unsafe.Pointer(&alloc(t, h, 64)[0]))
		}
	})
}
