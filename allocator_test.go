package freehold_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// An alignment is checked whatever Realloc does with the block.
func TestReallocChecksTheAlignment(t *testing.T) {
	a := alloctest.New(t)
	b := freehold.Must(a.Alloc(100, 8))
	for _, size := range []int{0, 50, 100, 200} {
		for _, old := range [][]byte{nil, b} {
			wantPanic(t, "freehold: Realloc: alignment 3, want a power of two", func() { freehold.Realloc(a, old, size, 3) })
		}
	}
	wantPanic(t, "freehold: Realloc: alignment 0, want a power of two", func() { freehold.Realloc(a, b, 100, 0) })
	a.Free(b) // it is as it was
}

// The bytes that ReallocZeroed adds to a block are zero, where the block moves, grows in place, or
// grows again after it shrank; the kept bytes are unchanged.
func TestReallocZeroed(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	allocators := map[string]freehold.Allocator{
		"copies": alloctest.New(t), "moves": mover{alloctest.New(t)}, "in place": newRoomy(t),
		"heap": heap, "limit": freehold.NewLimit(heap, 64<<20),
	}
	sizes := []int{100, 110, 60, 112, 5000, 40 << 10, 48 << 10, 41 << 10, 47 << 10, 9 << 20, 20 << 20, 100, 0, 10}
	for name, a := range allocators {
		t.Run(name, func(t *testing.T) {
			var b []byte
			for _, size := range sizes {
				old := len(b)
				r, err := freehold.ReallocZeroed(a, b, size, 16)
				if err != nil {
					t.Fatal(err)
				}
				kept := min(old, size)
				if len(r) != size || bytes.Count(r[:kept], []byte{7}) != kept || bytes.Count(r[kept:], []byte{0}) != size-kept {
					t.Fatalf("from %d to %d bytes: %d bytes, not zero behind what was kept", old, size, len(r))
				}
				for i := range r {
					r[i] = 7
				}
				b = r
			}
			a.Free(b)
		})
	}
}

// A block that ReallocZeroed cannot grow is unchanged and still its owner's.
func TestReallocZeroedAtALimit(t *testing.T) {
	a := freehold.NewLimit(alloctest.New(t), 150)
	b := freehold.Must(freehold.ReallocZeroed(a, nil, 100, 8))
	if _, err := freehold.ReallocZeroed(a, b, 120, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Error(err)
	}
	wantPanic(t, "freehold: ReallocZeroed: alignment 3, want a power of two", func() { freehold.ReallocZeroed(a, b, 120, 3) })
	a.Free(b)
}
