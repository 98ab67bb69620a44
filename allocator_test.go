package freehold_test

import (
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
