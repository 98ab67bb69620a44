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
				if isEmpty(c.tops[class]) {
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

// The assembly uses both magazines of a class, and leaves them whole where it goes on in Go.
func TestAssemblySwapsMagazines(t *testing.T) {
	if !pin.AssemblyRuns() {
		t.Skip("there is no assembly")
	}
	const size = 64
	h := newHeap(t, Options{Decay: never})
	o := newLocalCache(h) // whose place is known
	defer o.Close()
	class := classFor(size, 8)
	blocks := make([][]byte, 2*classes[class].batch) // as many as fit
	alloc := func(f *functions, from, to int) {
		for i := range blocks[from:to] {
			blocks[from+i], _ = f.LocalAlloc(o, size, 8, false, 0)
		}
	}
	free := func(from, to int) {
		for _, b := range blocks[from:to] {
			idle.localFree(o, b, 0)
		}
	}
	alloc(&idle, 0, len(blocks))
	free(0, len(blocks))

	was := plain
	defer func() { plain = was }()
	calls := 0
	plain.LocalAlloc = func(o *LocalCache, size, align int, zero bool, at uintptr) ([]byte, error) {
		calls++
		return was.LocalAlloc(o, size, align, zero, at)
	}
	plain.localFree = func(o *LocalCache, b []byte, at uintptr) bool { calls++; return was.localFree(o, b, at) }
	for _, f := range []*functions{&idle, &counting} {
		for half := len(blocks) / 2; half < len(blocks)/2+3; half++ {
			o.slot.Entry().left = 1 << 40 // no sample is due
			alloc(f, 0, half)
			free(half-3, half)
			alloc(f, half-3, len(blocks))
			free(0, len(blocks))
			if calls != 0 {
				t.Fatalf("%d calls went on in Go", calls)
			}
		}
	}
	half := len(blocks) / 2
	alloc(&idle, 0, half)
	o.slot.Entry().left = 0 // a sample is due with the first block of the other magazine
	alloc(&counting, half, half+1)
	if calls != 1 {
		t.Error("no sample was due")
	}
	alloc(&idle, half+1, len(blocks))
	seen := map[uintptr]bool{}
	for _, b := range blocks {
		seen[addrOf(b)] = true
	}
	if len(seen) != len(blocks) || seen[0] {
		t.Error("a block was handed out twice, or not at all")
	}
	free(0, len(blocks))
	h.check(t)
}
