package vector

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// fixed is an allocator whose blocks keep their size.
type fixed struct{ freehold.Allocator }

func (fixed) Resize([]byte, int) ([]byte, bool) { return nil, false }

// words is a parent of blocks with the alignment of a uint64 alone.
type words struct{ fixed }

func (a words) Alloc(size, align int) ([]byte, error) {
	if align == int(unsafe.Alignof(uint64(0))) {
		return a.fixed.Alloc(size, align)
	}
	return nil, fmt.Errorf("blocks aligned to %d", align)
}

// A Clip that moves the elements keeps their alignment.
func TestClipThatMoves(t *testing.T) {
	v := New[uint64](words{fixed{alloctest.New(t)}}, nil)
	defer v.Close()
	if err := v.Grow(100); err != nil {
		t.Fatal(err)
	}
	v.Append(7)
	if v.Clip(); v.Cap() != 1 || v.At(0) != 7 {
		t.Errorf("%v of %d", v.Slice(), v.Cap())
	}
}

// A Clip for which the parent has no memory changes nothing.
func TestClipThatFails(t *testing.T) {
	v := New[int](fixed{alloctest.FailAfter(alloctest.New(t), 1)}, nil)
	defer v.Close()
	if err := v.Grow(100); err != nil {
		t.Fatal(err)
	}
	if err := v.AppendSlice([]int{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	before := v.Cap()
	v.Clip()
	if v.Cap() != before || !slices.Equal(v.Slice(), []int{1, 2, 3}) {
		t.Errorf("%v of %d, and the capacity was %d", v.Slice(), v.Cap(), before)
	}
	if err := v.Grow(1000); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("error %v", err)
	}
}
