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

// Append to a slice of the elements copies: the vector's own capacity is not touched.
func TestSliceHasNoCapacity(t *testing.T) {
	v := New[int](alloctest.New(t), nil)
	defer v.Close()
	for i := range 5 {
		if err := v.Append(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Grow(10); err != nil {
		t.Fatal(err)
	}
	s := append(v.Slice(), 100)
	if err := v.Append(5); err != nil {
		t.Fatal(err)
	}
	if s[5] != 100 || !slices.Equal(v.Slice(), []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("%v, and the vector has %v", s, v.Slice())
	}
}

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

// A Chunked that was clipped at the end of a block takes a new one for the next element.
func TestClipAtTheEndOfABlock(t *testing.T) {
	c := NewChunked[uint64](alloctest.New(t), nil)
	defer c.Close()
	per := 1 << c.first
	for blocks := range 7 {
		for c.Len() < blocks*per && blocks < 5 || c.Len() < c.Cap() {
			if _, err := c.Append(uint64(c.Len())); err != nil {
				t.Fatal(err)
			}
		}
		full := c.Len()
		if err := c.Grow(1000); err != nil {
			t.Fatal(err)
		}
		c.Clip()
		if c.Len() != full || c.Cap() != full {
			t.Errorf("capacity %d after Clip, for %d elements", c.Cap(), full)
		}
		if _, err := c.Append(uint64(full)); err != nil {
			t.Fatal(err)
		}
		for i, p := range c.All() {
			if *p != uint64(i) {
				t.Fatalf("element %d is %d", i, *p)
			}
		}
	}
}

// Append takes no block before those of Grow, or of elements that were dropped, are full.
func TestAppendFillsTheBlocksThatAreThere(t *testing.T) {
	c := NewChunked[uint64](alloctest.New(t), nil)
	defer c.Close()
	if err := c.Grow(1000); err != nil {
		t.Fatal(err)
	}
	full := c.Cap()
	for range 2 {
		for range full {
			if _, err := c.Append(1); err != nil {
				t.Fatal(err)
			}
		}
		if c.Len() != full || c.Cap() != full {
			t.Errorf("capacity %d for %d elements, and it was %d", c.Cap(), c.Len(), full)
		}
		c.Clear()
	}
}
