// Resize: in place, and by moving pages.

package heap

import (
	"math"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/vm"
)

func TestResizeSmall(t *testing.T) {
	h := newHeap(t, Options{})
	tests := []struct {
		from, to int
		ok       bool
	}{
		{100, 112, true},  // to the end of its block
		{100, 113, false}, // beyond
		{100, 57, true},   // more than half of the block stays in use
		{100, 56, false},  // a copy saves half
		{100, 0, true},    // freed
		{32768, 32769, false},
		{40000, 32768, false}, // from a run to a class
		{40000, 49152, true},  // to the end of its pages
		{40000, math.MaxInt, false},
	}
	for _, tt := range tests {
		b := alloc(t, h, tt.from)
		fill(b, 7)
		r, ok := h.Resize(b, tt.to)
		if ok != tt.ok {
			t.Errorf("%d to %d: %v", tt.from, tt.to, ok)
		}
		if !ok {
			r = b
		} else if len(r) != tt.to || cap(r) != tt.to {
			t.Errorf("%d to %d: len %d, cap %d", tt.from, tt.to, len(r), cap(r))
		}
		if !allSet(r[:min(len(r), tt.from)], 7) {
			t.Errorf("%d to %d: contents changed", tt.from, tt.to)
		}
		h.Free(r)
	}
	if r, ok := h.Resize(nil, 0); !ok || r == nil {
		t.Errorf("Resize(nil, 0) = %v, %v", r, ok)
	}
	if _, ok := h.Resize(nil, 10); ok {
		t.Error("Resize(nil, 10) succeeded")
	}
}

// At its limit a heap serves a small block by pages, and shrinks it all the same.
func TestSmallBlockThatIsPagesIsResized(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 128 << 10})
	var live [][]byte
	tried := 0
	for {
		b, err := h.Alloc(5000, 8, false)
		if err != nil {
			break
		}
		fill(b, 5)
		live = append(live, b)
	}
	for i, b := range live {
		if small.SpanAt(uintptr(unsafe.Pointer(&b[0]))).Kind != pages.LargeRun {
			continue
		}
		tried++
		for _, size := range []int{100, 8000, 2000} {
			r, ok := h.Resize(b, size)
			if !ok || len(r) != size || !allSet(r[:100], 5) {
				t.Fatalf("Resize of %d bytes to %d: %v", len(b), size, ok)
			}
			b = r
		}
		if _, ok := h.Resize(b, pages.PageBytes+1); ok {
			t.Error("a small block grew over pages that a class serves better")
		}
		live[i] = b
	}
	if tried == 0 {
		t.Error("no small block is pages: try another limit")
	}
	for _, b := range live {
		h.Free(b)
	}
}

// A Resize that looked at a block before another goroutine freed or resized it changes
// nothing.
func TestResizeOfWhatAnotherHasFreed(t *testing.T) {
	for _, size := range []int{1 << 20, 3 << 20, 16 << 20} {
		for _, c := range []struct {
			name string
			do   func(h *Heap, b []byte)
		}{
			{"Free", func(h *Heap, b []byte) { h.Free(b) }},
			{"Resize", func(h *Heap, b []byte) { h.Resize(b, 1500<<10) }},
		} {
			h := newHeap(t, Options{})
			b := alloc(t, h, 2<<20)
			s := small.SpanAt(small.AddrOf(b))
			c.do(h, b)
			if panicOf(func() { h.resizeLarge("Heap.Resize", s, b, size) }) == "" {
				t.Errorf("to %d bytes after %s: no panic", size, c.name)
			}
			h.check(t)
		}
	}
}

// While a block grows in place, a goroutine that has found it live before does not free it.
func TestFreeOfABlockThatIsBeingResized(t *testing.T) {
	p := &testPayer{max: math.MaxInt}
	h := newHeap(t, Options{Payer: p})
	b := alloc(t, h, 100<<10)
	s, tries := pages.SpanAt(small.AddrOf(b)), 0
	p.onCharge = func() {
		if tries++; s.Claim(small.AddrOf(b), uintptr(len(b))) {
			t.Error("the block is freed, and grows")
		}
	}
	r, ok := h.Resize(b, 1<<20)
	p.onCharge = nil
	if !ok || tries == 0 {
		t.Fatalf("resized: %v; %d charges", ok, tries)
	}
	h.check(t)
	h.Free(r)
}

// While a block's pages are moved, a Free or Resize of the same block is refused, and
// the move ends well.
func TestMisuseOfABlockThatIsBeingMoved(t *testing.T) {
	for _, fails := range []bool{false, true} {
		h := newHeap(t, Options{})
		b := alloc(t, h, 9<<20)
		alloc(t, h, 40000) // so that it cannot grow in place
		fill(b, 1)
		refused := 0
		restore := vm.SetFault(func(op vm.Op) error {
			if op != vm.OpMove {
				return nil
			}
			for _, misuse := range []func(){
				func() { h.Free(b) },
				func() { h.Resize(b, 12<<20) },
				func() { h.Resize(b, 1<<19) },
			} {
				func() {
					defer func() {
						if recover() != nil {
							refused++
						}
					}()
					misuse()
				}()
			}
			if fails {
				return vm.ErrUnsupported
			}
			return nil
		})
		r, ok := h.Resize(b, 12<<20)
		restore()
		if !ok && !fails {
			t.Skip("pages are not moved here")
		}
		if refused != 3 || ok == fails {
			t.Errorf("the move fails %t: %d misuses were refused, want 3; resized %t", fails, refused, ok)
		}
		if ok {
			b = r[:9<<20]
		}
		for i, c := range b {
			if c != 1 {
				t.Fatalf("byte %d is %d", i, c)
			}
		}
		h.check(t)
		if fails {
			h.Free(b)
		}
	}
}
