//go:build !race && !freehold_portable && !asan

package heap

import (
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/test/pintest"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

// Functions in Go are called if and only if assembly cannot run.
func TestAssemblyRunsIfItCan(t *testing.T) {
	code := func(f any) uintptr { return reflect.ValueOf(f).Pointer() }
	if inGo := code(Fast.free) == code(inGo.free); inGo == pin.AssemblyRuns() {
		t.Errorf("functions in Go run: %t; assembly can: %t", inGo, !inGo)
	}
}

func TestSlotsBeyondTheFirst(t *testing.T) {
	pintest.SlotsBeyondTheFirst(t, func(slow func(call string)) pintest.Slots {
		const size = 64
		class := small.ClassFor(size, 8)
		h := newHeap(t, Options{})
		was := inGo
		t.Cleanup(func() { inGo = was })
		inGo.Alloc = func(*Heap, int, int, bool, uintptr) ([]byte, error) { slow("alloc"); return nil, nil }
		inGo.free = func(*Heap, []byte, uintptr) bool { slow("free"); return true }
		inGo.freePointer = func(*Heap, unsafe.Pointer, uintptr, uintptr, uintptr) bool { slow("freePointer"); return true }
		return pintest.Slots{
			Fill: func() {
				if b, err := was.Alloc(h, size, 8, false, 0); err == nil {
					was.free(h, b, 0)
				}
			},
			Serve: func(slot int) bool {
				c := h.caches.Value(slot)
				if e, _ := c.Peek(class); e.Addr == 0 {
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
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so the heap has one cache
	h := newHeap(t, Options{Decay: never})
	ofHeap := func() *cache { return h.caches.Value(0) }
	alloc := func(f *functions, zero bool) []byte { b, _ := f.Alloc(h, 64, 8, zero, 0); return b }
	t.Run("heap", func(t *testing.T) {
		testSwaps(t, ofHeap, alloc, func(b []byte) { idle.free(h, b, 0) })
	})
	t.Run("pointers", func(t *testing.T) {
		testSwaps(t, ofHeap, alloc, func(b []byte) { idle.freePointer(h, unsafe.Pointer(&b[0]), 0, 0, 0) })
	})
}

// testSwaps tests functions that allocate 64 bytes from a cache and free them to it.
func testSwaps(t *testing.T, of func() *cache, alloc func(f *functions, zero bool) []byte, free func(b []byte)) {
	class := small.ClassFor(64, 8)
	blocks := make([][]byte, 2*batch) // as many as fit
	half := len(blocks) / 2
	take := func(f *functions, from, to int) {
		for i := range blocks[from:to] {
			blocks[from+i] = alloc(f, false)
		}
	}
	back := func(from, to int) {
		for _, b := range blocks[from:to] {
			fill(b, 0xAA)
			free(b)
		}
	}
	take(&idle, 0, len(blocks))
	back(0, len(blocks))
	c := of()
	calls := countInGo(t)

	for _, f := range []*functions{&idle, &counting} {
		for n := half; n < half+3; n++ {
			c.left = 1 << 40 // no sample is due
			take(f, 0, n)
			back(n-3, n)
			take(f, n-3, len(blocks))
			counted := int64(len(blocks)+3) * (64 + watch.Countdown.Extra.Load())
			if f == &idle {
				counted = 0
			}
			back(0, len(blocks))
			if err := c.Verify(func(uintptr) {}); err != nil {
				t.Fatal(err)
			}
			if *calls != 0 || c.left != 1<<40-counted {
				t.Fatalf("%d calls went on in Go; %d bytes counted, want %d", *calls, 1<<40-c.left, counted)
			}
		}
	}

	// What is on top decides.
	for _, tt := range []struct {
		taken  int // before the block on top, of which
		status uint16
		calls  int
		first  byte // of the block if it is zeroed
	}{
		{half, small.FreeDirty, 0, 0},
		{half, small.FreeZero, 0, 0xAA}, // as it is
		{half - 1, 64, 1, 0xAA},         // freed twice at once: Go names it
		{half, 64, 1, 0xAA},
	} {
		take(&idle, 0, tt.taken)
		e, _ := c.Peek(class)
		if e.Addr == 0 {
			spare := *(*uintptr)(unsafe.Add(unsafe.Pointer(c), small.SpareTops+uintptr(class)*unsafe.Sizeof(uintptr(0))))
			e = (*small.Entry)(vm.Pointer(spare - unsafe.Sizeof(small.Entry{})))
		}
		*small.StatusAt(e.Status) = tt.status
		before := *c
		*calls = 0
		var b []byte
		panicked := panicOf(func() { b = alloc(&idle, true) })
		if *calls != tt.calls || (panicked == "") != (tt.calls == 0) || *(*byte)(vm.Pointer(e.Addr)) != tt.first {
			t.Errorf("%+v: %d calls went on in Go, panic %q, byte %#x", tt, *calls, panicked, *(*byte)(vm.Pointer(e.Addr)))
		}
		if panicked == "" {
			blocks[tt.taken] = b
		} else {
			*c = before
			*small.StatusAt(e.Status) = small.FreeDirty
			blocks[tt.taken] = alloc(&idle, false)
		}
		take(&idle, tt.taken+1, len(blocks))
		back(0, len(blocks))
	}

	take(&idle, 0, half)
	c.left = 0 // a sample is due with the first block of the other magazine
	*calls = 0
	take(&counting, half, half+1)
	if *calls != 1 {
		t.Error("no sample was due")
	}
	take(&idle, half+1, len(blocks))
	seen := map[uintptr]bool{}
	for _, b := range blocks {
		seen[small.AddrOf(b)] = true
	}
	if len(seen) != len(blocks) || seen[0] {
		t.Error("a block was handed out twice, or not at all")
	}
	*calls = 0
	blocks = append(blocks, alloc(&idle, false)) // both magazines are empty
	inAlloc := *calls
	back(0, len(blocks))
	if inAlloc != 1 || *calls == 1 {
		t.Errorf("%d calls went on in Go with both magazines empty, %d with both full", inAlloc, *calls-inAlloc)
	}
	if err := c.Verify(func(uintptr) {}); err != nil {
		t.Error(err)
	}
}

// countInGo counts the calls that go on in Go.
func countInGo(t *testing.T) *int {
	was, calls := inGo, new(int)
	t.Cleanup(func() { inGo = was })
	inGo.functions = functions{
		func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error) {
			*calls++
			return was.Alloc(h, size, align, zero, at)
		},
		func(h *Heap, b []byte, at uintptr) bool { *calls++; return was.free(h, b, at) },
		func(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool {
			*calls++
			return was.freePointer(h, p, 0, 0, at)
		},
	}
	return calls
}
