//go:build !asan

package heap_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/heap"
)

func TestConformanceChecked(t *testing.T) {
	for name, o := range map[string]heap.Options{
		"plain":      {},
		"limit":      {MaxBytes: 1 << 30},
		"wholePages": {WholePages: true},
	} {
		t.Run(name, func(t *testing.T) {
			heap.CheckBlocks(t, 1<<18)
			heap.SampleAt(t, 1000)
			alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
				return heap.Adapter{Heap: heap.NewHeap(t, o)}
			}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
		})
	}
}

// FuzzChecked is FuzzHeap with checked blocks.
func FuzzChecked(f *testing.F) {
	f.Add([]byte{0, 0, 8, 0, 1, 0, 8, 0, 4, 0, 0, 0})
	f.Add([]byte{0, 0, 255, 255, 2, 0, 3, 255, 3, 0, 255, 255, 4, 0, 0, 0})
	f.Fuzz(func(t *testing.T, prog []byte) {
		heap.CheckBlocks(t, 1<<16)
		h := heap.NewHeap(t, heap.Options{})
		for _, rate := range []int{0, 1, 500} {
			heap.SetSampleRate(rate)
			alloctest.RunProgram(t, heap.Adapter{Heap: h}, prog)
		}
		heap.SetSampleRate(0)
		if st := h.Stats(); st.Allocated != 0 || st.Blocks != 0 {
			t.Fatalf("after all is freed: %d bytes in %d blocks", st.Allocated, st.Blocks)
		}
		h.Trim()
		heap.Check(h, t)
		if st := h.Stats(); st.Active != 0 || st.Committed != st.Metadata {
			t.Fatalf("after Trim: %+v", st)
		}
	})
}
