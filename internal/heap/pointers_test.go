// Pointers: Malloc and its kind.

package heap

import (
	"math"
	"testing"
	"unsafe"
)

func TestPointers(t *testing.T) {
	h := newHeap(t, Options{})
	for _, size := range []int{0, 1, 16, 100, 40000, 2 << 20} {
		p := h.Malloc(size)
		if uintptr(p)%mallocAlign != 0 || h.UsableSize(p) < max(size, 1) {
			t.Fatalf("Malloc(%d) = %p, usable %d", size, p, h.UsableSize(p))
		}
		whole := unsafe.Slice((*byte)(p), h.UsableSize(p))
		fill(whole, 5)
		q := h.ReallocPointer(p, size*3+200)
		if !allSet(unsafe.Slice((*byte)(q), len(whole)), 5) {
			t.Fatalf("size %d: ReallocPointer lost contents", size)
		}
		h.FreePointer(q)
		z := h.Calloc(2, size)
		if !allSet(unsafe.Slice((*byte)(z), 2*size), 0) {
			t.Fatalf("Calloc(2, %d) is not zero", size)
		}
		h.FreePointer(z)
	}
	h.FreePointer(nil)
	if h.UsableSize(nil) != 0 {
		t.Error("UsableSize(nil)")
	}
	p := h.ReallocPointer(nil, 10)
	h.FreePointer(h.ReallocPointer(p, 0))
	if p := h.Calloc(math.MaxInt, math.MaxInt); p != nil {
		t.Error("the size overflowed")
	}
	if st := h.Stats(); st.Blocks != 0 {
		t.Errorf("%+v", st)
	}
}
