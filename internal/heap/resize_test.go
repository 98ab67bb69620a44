// Resize: in place, and by moving pages.

package heap

import (
	"math"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
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

// Another goroutine frees the block after Resize has looked at it.
func TestResizeOfWhatAnotherHasFreed(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 2<<20)
	s := small.SpanAt(small.AddrOf(b))
	h.Free(b)
	if panicOf(func() { h.resizeLarge("Heap.Resize", s, b, 3<<20) }) == "" {
		t.Error("no panic")
	}
}
