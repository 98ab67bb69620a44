//go:build !race && !freehold_portable && !asan

package heap

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/test/pintest"
)

// Functions in Go are called if and only if assembly cannot run.
func TestAssemblyRunsIfItCan(t *testing.T) {
	code := func(f any) uintptr { return reflect.ValueOf(f).Pointer() }
	if inGo := code(Fast.free) == code(plain.free); inGo == pin.AssemblyRuns() {
		t.Errorf("functions in Go run: %t; assembly can: %t", inGo, !inGo)
	}
}

func TestSlotsBeyondTheFirst(t *testing.T) {
	pintest.SlotsBeyondTheFirst(t, func(slow func(call string)) pintest.Slots {
		const size = 64
		class := classFor(size, 8)
		h := newHeap(t, Options{})
		was := plain
		t.Cleanup(func() { plain = was })
		plain.Alloc = func(*Heap, int, int, bool, uintptr) ([]byte, error) { slow("alloc"); return nil, nil }
		plain.free = func(*Heap, []byte, uintptr) bool { slow("free"); return true }
		plain.freePointer = func(*Heap, unsafe.Pointer, uintptr, uintptr, uintptr) bool { slow("freePointer"); return true }
		return pintest.Slots{
			Fill: func() {
				if b, err := was.Alloc(h, size, 8, false, 0); err == nil {
					was.free(h, b, 0)
				}
			},
			Serve: func(slot int) bool {
				c := h.caches.Entry(slot)
				if m := c.loaded(class); m == nil || c.fill(class, m) == 0 {
					return false
				}
				if b, _ := idle.Alloc(h, size, 8, false, 0); b != nil {
					h.Free(b)
				}
				left := c.left
				c.left = 1 << 40 // no sample is due
				if b, _ := counting.Alloc(h, size, 8, false, 0); b != nil {
					h.FreePointer(unsafe.Pointer(&b[0]))
				}
				c.left = left
				return true
			},
		}
	})
}
