package arg

import (
	"testing"

	"github.com/freehold-go/freehold/internal/panics"
)

func TestArgumentsWithinTheirRangePass(t *testing.T) {
	Range("NewThing", "size", 1, 1, 3)
	Range("NewThing", "size", 3, 1, 3)
	AtLeast("NewThing", "size", 0, 0)
	Align("NewThing", 1)
	Align("NewThing", 1<<30)
	NotNil("NewThing", "next", t)
	NotNil("NewThing", "next", (*testing.T)(nil))
}

func TestPanicsNameTheCallTheValueAndWhatWasWanted(t *testing.T) {
	tests := []struct {
		check func()
		want  string
	}{
		{func() { Range("pool.NewBlocks", "size", 0, 1, 8) }, "freehold: pool.NewBlocks: size 0, want 1 to 8"},
		{func() { Range("pool.NewBlocks", "size", 9, 1, 8) }, "freehold: pool.NewBlocks: size 9, want 1 to 8"},
		{func() { Range("Vector.Truncate", "length", 5, 0, 0) }, "freehold: Vector.Truncate: length 5, want 0"},
		{func() { Range("Records.At", "offset", 0, 0, -1) }, "freehold: Records.At: offset 0, and none is valid: it is empty"},
		{func() { AtLeast("NewLimit", "maxBytes", -1, 0) }, "freehold: NewLimit: maxBytes -1, want 0 or more"},
		{func() { Align("Heap.Alloc", 0) }, "freehold: Heap.Alloc: alignment 0, want a power of two"},
		{func() { Align("Heap.Alloc", 3) }, "freehold: Heap.Alloc: alignment 3, want a power of two"},
		{func() { Align("Heap.Alloc", -8) }, "freehold: Heap.Alloc: alignment -8, want a power of two"},
		{func() { NotNil("NewLimit", "next", nil) }, "freehold: NewLimit: next is nil"},
		{func() { Panicf("Heap.Free", "%d of %s", 3, "these") }, "freehold: Heap.Free: 3 of these"},
	}
	for _, test := range tests {
		panics.Want(t, test.want, test.check)
	}
}
