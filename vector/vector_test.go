package vector_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/vector"
)

// Sizes beyond an int are out of memory.
func TestSizesOverflow(t *testing.T) {
	v, c := vector.New[[4]uint64](freehold.Default(), nil), vector.NewChunked[[4]uint64](freehold.NewLimit(freehold.Default(), 1<<20), nil)
	defer v.Close()
	defer c.Close()
	v.Append([4]uint64{})
	c.Append([4]uint64{})
	for _, n := range []int{math.MaxInt, math.MaxInt / 2, math.MaxInt/32 + 1} {
		for call, err := range map[string]error{"Vector": v.Grow(n), "Chunked": c.Grow(n)} {
			if !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Errorf("%s.Grow(%d): %v", call, n, err)
			}
		}
	}
	if c.Stats().Reserved > 2048 {
		t.Errorf("%+v", c.Stats())
	}
}

// Elements of size 0 take no memory.
func TestElementsOfNoSize(t *testing.T) {
	a := freehold.NewTagged(alloctest.New(t), "")
	v, c := vector.New[struct{}](a, nil), vector.NewChunked[struct{}](a, nil)
	for i := range 5000 {
		if err := v.Append(struct{}{}); err != nil {
			t.Fatal(err)
		}
		if p, err := c.Append(struct{}{}); p == nil || err != nil {
			t.Fatal(err)
		}
		if v.At(i) != (struct{}{}) || c.At(i) == nil {
			t.Fatal("no element")
		}
	}
	v.Insert(2, make([]struct{}, 10))
	v.AppendSlice(v.Slice())
	v.Delete(0, 20)
	n := 0
	for range c.All() {
		n++
	}
	if v.Len() != 10000 || c.Len() != 5000 || n != 5000 {
		t.Errorf("%d, %d and %d elements", v.Len(), c.Len(), n)
	}
	if err := c.Grow(math.MaxInt); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("Grow(MaxInt): %v", err)
	}
	v.Clip()
	c.Clip()
	if n := a.Counts().Live + v.Stats().Reserved + c.Stats().Reserved; n != 0 {
		t.Errorf("%d blocks and bytes", n)
	}
	v.Close()
	c.Close()
}

// Clip and Close give all back.
func TestMemoryGoesBack(t *testing.T) {
	a := freehold.NewTagged(freehold.Default(), "")
	v, c := vector.New[int32](a, nil), vector.NewChunked[int32](a, nil)
	for i := range int32(100_000) {
		v.Append(i)
		c.Append(i)
	}
	if n := c.Cap(); n > 125_000 {
		t.Errorf("%d elements of capacity for 100,000", n)
	}
	v.Truncate(1000)
	c.Truncate(1000)
	v.Clip()
	c.Clip()
	if got := a.Counts().LiveBytes; got > 12000 || v.Cap() > 2000 || c.Cap() > 1300 || v.At(999) != 999 || *c.At(999) != 999 {
		t.Errorf("%d bytes, %+v, %+v", got, v.Stats(), c.Stats())
	}
	v.Clear()
	v.Clip()
	c.Clear()
	c.Clip()
	if n := a.Counts().Live; n != 0 {
		t.Errorf("%d blocks", n)
	}
	v.Append(1)
	c.Append(1)
	v.Close()
	c.Close()
	v.Close()
	c.Close()
	if n := a.Counts().Live; n != 0 {
		t.Errorf("%d blocks after Close", n)
	}
}

// A vector in an arena ends with it, and the newest block grows in place.
func TestVectorInAnArena(t *testing.T) {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	v := vector.New[uint64](a, nil)
	for i := range uint64(1000) {
		v.Append(i)
	}
	if n := a.Stats().LiveBytes; n > 1000*8*3 {
		t.Errorf("%d bytes", n)
	}
	v.Close()
}

type hasPointer struct {
	id   int
	next struct{ name string }
}

// Misuse panics and says what was wrong.
func TestPanics(t *testing.T) {
	heap := freehold.Default()
	v, c := vector.New[int](heap, nil), vector.NewChunked[int](heap, nil)
	defer v.Close()
	defer c.Close()
	v.Append(1)
	c.Append(1)
	v.Grow(10) // its capacity is not its length
	tests := []struct {
		do   func()
		want string
	}{
		{func() { vector.New[hasPointer](heap, nil) }, "vector.New[hasPointer]: field next.name is a string, which points into the Go heap; use freehold.String"},
		{func() { vector.NewChunked[*int](heap, nil) }, "vector.NewChunked[*int]: it is a *int, which points into the Go heap; use freehold.Ptr[int]"},
		{func() { v.At(1) }, "vector.Vector.At: index 1, and the length is 1"},
		{func() { v.At(-1) }, "vector.Vector.At: index -1, and the length is 1"},
		{func() { v.Set(1, 1) }, "vector.Vector.Set: index 1, and the length is 1"},
		{func() { c.At(1) }, "vector.Chunked.At: index 1, and the length is 1"},
		{func() { c.At(-1) }, "vector.Chunked.At: index -1, and the length is 1"},
		{func() { v.Insert(2, []int{1}) }, "vector.Vector.Insert: index 2, want 0 to 1"},
		{func() { v.Insert(-1, nil) }, "vector.Vector.Insert: index -1, want 0 to 1"},
		{func() { v.Delete(0, 2) }, "vector.Vector.Delete: end 2, want 0 to 1"},
		{func() { v.Delete(1, 0) }, "vector.Vector.Delete: index 1, want 0"},
		{func() { v.Truncate(2) }, "vector.Vector.Truncate: length 2, want 0 to 1"},
		{func() { c.Truncate(-1) }, "vector.Chunked.Truncate: length -1, want 0 to 1"},
		{func() { v.Grow(-1) }, "vector.Vector.Grow: n -1, want 0 or more"},
		{func() { c.Grow(-1) }, "vector.Chunked.Grow: n -1, want 0 or more"},
	}
	for _, tt := range tests {
		if got, want := panics.Of(tt.do), "freehold: "+tt.want; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	if v.Len() != 1 || c.Len() != 1 {
		t.Error("a panic has changed a vector")
	}
}

// Loops over All may end early, and see what is added meanwhile.
func TestAll(t *testing.T) {
	v, c := vector.New[int](alloctest.New(t), nil), vector.NewChunked[int](alloctest.New(t), nil)
	defer v.Close()
	defer c.Close()
	v.Append(0)
	c.Append(0)
	n := 0
	for i, e := range v.All() {
		if i != e {
			t.Fatalf("element %d is %d", i, e)
		}
		if v.Len() < 500 {
			v.Append(i + 1)
		}
		n++
	}
	for i, e := range c.All() {
		if i != *e {
			t.Fatalf("element %d is %d", i, *e)
		}
		if c.Len() < 500 {
			c.Append(c.Len())
		}
		n++
	}
	if n != 1000 {
		t.Errorf("%d elements", n)
	}
	for range v.All() {
		break
	}
	for range c.All() {
		break
	}
}

// Elements that a loop drops are not yielded, nor is their memory once it is gone.
func TestAllOfDroppedElements(t *testing.T) {
	for name, drop := range map[string]func(c *vector.Chunked[int]){
		"Truncate": func(c *vector.Chunked[int]) { c.Truncate(1) },
		"Clip":     func(c *vector.Chunked[int]) { c.Truncate(1); c.Clip() },
		"Close":    func(c *vector.Chunked[int]) { c.Close() },
	} {
		c := vector.NewChunked[int](alloctest.New(t), nil)
		for i := range 1000 {
			c.Append(i)
		}
		n := 0
		for i := range c.All() {
			if n++; i == 500 {
				drop(c)
			}
		}
		if n != 501 {
			t.Errorf("%s: %d elements", name, n)
		}
		c.Close()
	}
	c := vector.NewChunked[int](alloctest.New(t), nil)
	defer c.Close()
	for i := range 1000 {
		c.Append(i)
	}
	for i, e := range c.All() {
		if i == 500 {
			c.Clear()
			c.Clip()
			for i := range 1000 {
				c.Append(i)
			}
		} else if e != c.At(i) || *e != i {
			t.Fatalf("element %d is %d", i, *e)
		}
	}
}

// What is inserted may be of elements that were dropped: their memory is valid until the
// capacity changes.
func TestInsertDroppedElements(t *testing.T) {
	for _, spare := range []int{0, 10} {
		for from := range 10 {
			for to := from; to <= 10; to++ {
				for length := range 11 {
					for at := range length + 1 {
						v := vector.New[int](alloctest.New(t), nil)
						v.AppendSlice([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
						v.Grow(spare)
						s := v.Slice()[from:to]
						want := slices.Insert(slices.Clone(v.Slice()[:length]), at, slices.Clone(s)...)
						v.Truncate(length)
						if err := v.Insert(at, s); err != nil || !slices.Equal(v.Slice(), want) {
							t.Fatalf("elements %d to %d of %d at %d: %v, %v", from, to, length, at, err, v.Slice())
						}
						v.Close()
					}
				}
			}
		}
	}
}
