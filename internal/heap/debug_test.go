//go:build freehold_debug

package heap

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// What a debug build finds, and when.
func TestDebugBuildFindsLateAndLongWrites(t *testing.T) {
	beyond := func(b []byte) []byte { return unsafe.Slice(unsafe.SliceData(b), len(b)+1) }
	tests := []struct {
		name string
		do   func(h *Heap)
		want string
	}{
		{"a write after Free", func(h *Heap) {
			b := alloc(t, h, 100)
			h.Free(b)
			b[7] = 1
			alloc(t, h, 100)
		}, "7 bytes into a free block, was written"},
		{"a write after Free to a cache", func(h *Heap) {
			var o LocalCache
			o.Init(h)
			b, _ := o.Alloc(100, 8, false)
			o.Free(b)
			b[99] = 0
			o.Alloc(100, 8, false)
		}, "99 bytes into a free block, was written"},
		{"a write after Free and a drain", func(h *Heap) {
			keep := alloc(t, h, 100)
			b := alloc(t, h, 100)
			h.Free(b)
			h.drain()
			b[0] = 1
			alloc(t, h, 100)
			_ = keep
		}, "0 bytes into a free block, was written"},
		{"a write to a block that nobody had", func(h *Heap) {
			b := alloc(t, h, 112)
			unsafe.Slice(unsafe.SliceData(b), 2*112)[112] = 1
			alloc(t, h, 112)
		}, "0 bytes into a free block, was written"},
		{"a write beyond the end", func(h *Heap) {
			b := alloc(t, h, 100)
			beyond(b)[100] = 1
			h.Free(b)
		}, "was written 0 bytes beyond its end"},
		{"a write beyond the end that a Resize left", func(h *Heap) {
			b := alloc(t, h, 112)
			b, _ = h.Resize(b, 100)
			beyond(b)[100] = 1
			h.Free(b)
		}, "was written 0 bytes beyond its end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := makeHeap(Options{Decay: -1})
			defer h.Close()
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) {
					t.Errorf("panic %q, want %q", got, tt.want)
				}
			}()
			tt.do(h)
		})
	}
}

// Slow paths check the spans of their class, and free runs their neighbours.
func TestDebugBuildChecksInvariants(t *testing.T) {
	h := makeHeap(Options{Decay: -1})
	alloc(t, h, 64)
	c := &h.central[classOf[64/8]]
	spanPtr(c.partial.head).live++
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "blocks are free in span") {
			t.Errorf("panic %q", got)
		}
	}()
	h.drain()
	alloc(t, h, 64)
}

// UsableSize is what was asked for, so that a write behind it is found.
func TestDebugBuildHasNothingToSpare(t *testing.T) {
	h := newHeap(t, Options{})
	p := h.Malloc(100)
	if n := h.UsableSize(p); n != 100 {
		t.Errorf("%d bytes of 100 are usable", n)
	}
	h.FreePointer(p)
}
