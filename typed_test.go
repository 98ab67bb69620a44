package freehold_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/watch"
)

type point struct{ x, y, z float64 }

type node struct {
	key  freehold.String
	next freehold.Ptr[node]
	seen bool
}

// odd has a size that is no power of two and an alignment of 1.
type odd [3]byte

func TestNewIsZeroAndAligned(t *testing.T) {
	a := alloctest.New(t)
	testNew[bool](t, a)
	testNew[uint16](t, a)
	testNew[uint64](t, a)
	testNew[complex128](t, a)
	testNew[odd](t, a)
	testNew[point](t, a)
	testNew[node](t, a)
	testNew[[1 << 20]uint32](t, a)
}

func testNew[T any](t *testing.T, a freehold.Allocator) {
	t.Helper()
	var zero T
	for range 3 {
		p := freehold.Must(freehold.New[T](a))
		if !reflect.ValueOf(*p).IsZero() {
			t.Errorf("New[%T] is not zero", zero)
		}
		if uintptr(unsafe.Pointer(p))%unsafe.Alignof(zero) != 0 {
			t.Errorf("New[%T] is at %p", zero, p)
		}
		freehold.Free(a, p)
	}
}

func TestNewOfSizeZero(t *testing.T) {
	a := freehold.NewTagged(alloctest.New(t), "")
	p := freehold.Must(freehold.New[struct{}](a))
	q := freehold.Must(freehold.New[[0]uint64](a))
	if p == nil || q == nil {
		t.Errorf("pointers %p and %p", p, q)
	}
	freehold.Free(a, p)
	freehold.Free(a, q)
	if c := a.Counts(); c != (freehold.Counts{}) {
		t.Errorf("counts %+v", c)
	}
}

func TestFreeTakesNil(t *testing.T) {
	a := alloctest.New(t)
	freehold.Free[point](a, nil)
	freehold.FreeSlice[point](a, nil)
	freehold.FreeSlice(a, []point{})
	freehold.FreeString(a, "")
}

func TestFreePassesTheAllocatorsPanicThrough(t *testing.T) {
	a := alloctest.New(t)
	p := freehold.Must(freehold.New[uint64](a))
	freehold.Free(a, p)
	wantPanic(t, "freehold: alloctest.Allocator.Free: 8 bytes ...", func() { freehold.Free(a, p) })
	s := freehold.Must(freehold.MakeSlice[uint64](a, 4))
	wantPanic(t, "freehold: alloctest.Allocator.Free: 24 bytes ...", func() { freehold.FreeSlice(a, s[1:]) })
	wantPanic(t, "freehold: alloctest.Allocator.Free: 16 bytes ...", func() { freehold.FreeSlice(a, s[:2:2]) })
	freehold.FreeSlice(a, s[:1]) // cap is what counts
	wantPanic(t, "freehold: alloctest.Allocator.Free: 3 bytes ...", func() { freehold.FreeString(a, "abc") })
}

func TestMakeSlice(t *testing.T) {
	a := alloctest.New(t)
	for _, n := range []int{0, 1, 2, 3, 100, 10000} {
		s := freehold.Must(freehold.MakeSlice[point](a, n))
		if s == nil || len(s) != n || cap(s) != n {
			t.Errorf("n = %d: nil %t, len %d, cap %d", n, s == nil, len(s), cap(s))
		}
		for i := range s {
			if s[i] != (point{}) {
				t.Fatalf("n = %d: element %d is %v", n, i, s[i])
			}
		}
		freehold.FreeSlice(a, s)
	}
	s := freehold.Must(freehold.MakeSlice[struct{}](a, 5))
	if s == nil || len(s) != 5 {
		t.Errorf("of size 0: nil %t, len %d", s == nil, len(s))
	}
	freehold.FreeSlice(a, s)
}

func TestMakeSliceOfTooMany(t *testing.T) {
	a := alloctest.New(t)
	tests := []struct {
		why  string
		make func() error
		want string
	}{
		{"n * 8 overflows to a negative size", makeSlice[uint64](a, math.MaxInt/8+1), "elements of 8 bytes are more than an int can hold"},
		{"n * 8 overflows twice, to a small size", makeSlice[uint64](a, math.MaxInt/4+3), "elements of 8 bytes are more than an int can hold"},
		{"the largest n", makeSlice[point](a, math.MaxInt), fmt.Sprintf("freehold: out of memory: %d elements of 24 bytes are more than an int can hold", math.MaxInt)},
		{"no overflow: the allocator's to refuse", makeSlice[uint64](a, math.MaxInt/8), "alloctest gives no block of"},
		{"the same for bytes", makeSlice[byte](a, math.MaxInt), "alloctest gives no block of"},
	}
	for _, c := range tests {
		err := c.make()
		if !errors.Is(err, freehold.ErrOutOfMemory) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.why, err, c.want)
		}
	}
	if s, err := freehold.MakeSlice[struct{}](a, math.MaxInt); err != nil || len(s) != math.MaxInt {
		t.Errorf("no element is too many if it has no size: len %d, %v", len(s), err)
	}
}

func makeSlice[T any](a freehold.Allocator, n int) func() error {
	return func() error {
		s, err := freehold.MakeSlice[T](a, n)
		if err != nil && s != nil {
			return fmt.Errorf("a slice of %d elements beside %w", len(s), err)
		}
		return err
	}
}

func TestMakeSliceOfNegativeLength(t *testing.T) {
	a := alloctest.New(t)
	wantPanic(t, "freehold: MakeSlice: n -1, want 0 or more", func() { freehold.MakeSlice[point](a, -1) })
	wantPanic(t, fmt.Sprintf("freehold: MakeSlice: n %d, want 0 or more", math.MinInt), func() { freehold.MakeSlice[byte](a, math.MinInt) })
}

func TestGoPointersAreRefusedByName(t *testing.T) {
	a := alloctest.New(t)
	const rest = ": it is a string, which points into the Go heap; use freehold.String"
	wantPanic(t, "freehold: New[string]"+rest, func() { freehold.New[string](a) })
	wantPanic(t, "freehold: MakeSlice[string]"+rest, func() { freehold.MakeSlice[string](a, 1) })
	wantPanic(t, "freehold: Clone[string]"+rest, func() { freehold.Clone(a, []string{"a"}) })
	wantPanic(t, "freehold: Append[string]"+rest, func() { freehold.Append(a, nil, "a") })
}

func TestClone(t *testing.T) {
	a := alloctest.New(t)
	for _, s := range [][]odd{nil, {}, {{1, 2, 3}}, {{1}, {2}, {3}, {4}}} {
		c := freehold.Must(freehold.Clone(a, s))
		if c == nil || !slices.Equal(c, s) || cap(c) != len(s) {
			t.Errorf("of %v: %v, cap %d", s, c, cap(c))
		}
		freehold.FreeSlice(a, c)
	}
}

// A slice of MakeSlice may be cut: the rest of it is room.
func TestMakeSliceThatIsCut(t *testing.T) {
	a := alloctest.New(t)
	s := freehold.Must(freehold.MakeSlice[point](a, 5))
	first := &s[0]
	s = freehold.Must(freehold.Append(a, s[:2], point{}, point{}, point{}))
	if len(s) != 5 || &s[0] != first {
		t.Error("Append within the capacity moved the slice")
	}
	freehold.FreeSlice(a, s[:1]) // whole, whatever its length
}

func TestGrow(t *testing.T) {
	for kind, a := range growers(t) {
		s := freehold.Must(freehold.Grow(a, []int32(nil), 10))
		if len(s) != 0 || cap(s) < 10 {
			t.Fatalf("%s: len %d, cap %d", kind, len(s), cap(s))
		}
		first := unsafe.SliceData(s)
		for i := range 10 {
			s = freehold.Must(freehold.Append(a, s, int32(i)))
		}
		if unsafe.SliceData(s) != first {
			t.Errorf("%s: Append moved a slice that was grown for it", kind)
		}
		if r := freehold.Must(freehold.Grow(a, s, cap(s)-len(s))); unsafe.SliceData(r) != first || cap(r) != cap(s) {
			t.Errorf("%s: Grow moved a slice that had the room", kind)
		}
		s = freehold.Must(freehold.Grow(a, s, 5000))
		if len(s) != 10 || cap(s) < 5010 {
			t.Errorf("%s: len %d, cap %d", kind, len(s), cap(s))
		}
		for i, v := range s {
			if v != int32(i) {
				t.Errorf("%s: element %d is %d", kind, i, v)
			}
		}
		if r, err := freehold.Grow(a, s, math.MaxInt); !errors.Is(err, freehold.ErrOutOfMemory) || unsafe.SliceData(r) != unsafe.SliceData(s) || len(r) != len(s) {
			t.Errorf("%s: Grow of more than an int can hold: %v", kind, err)
		}
		wantPanic(t, "freehold: Grow: n -1, want 0 or more", func() { freehold.Grow(a, s, -1) })
		wantPanic(t, "freehold: Grow[string]: ...", func() { freehold.Grow(a, []string{}, 0) })
		freehold.FreeSlice(a, s)
	}
}

func TestCloneString(t *testing.T) {
	a := alloctest.New(t)
	for _, s := range []string{"", "a", "héllo", strings.Repeat("long", 10000)} {
		from := []byte(s)
		c, of := freehold.Must(freehold.CloneString(a, string(from))), freehold.Must(freehold.CloneString(a, from))
		clear(from)
		if c != s || of != s {
			t.Errorf("of %.20q: %.20q and %.20q", s, c, of)
		}
		freehold.FreeString(a, c)
		freehold.FreeString(a, of)
	}
}

func TestMust(t *testing.T) {
	if v := freehold.Must(7, nil); v != 7 {
		t.Errorf("value %d", v)
	}
	defer func() {
		if r := recover(); r != error(freehold.ErrOutOfMemory) {
			t.Errorf("panic %v", r)
		}
	}()
	freehold.Must(7, freehold.ErrOutOfMemory)
}

// growers are allocators on which Append must behave the same.
func growers(t testing.TB) map[string]freehold.Allocator {
	return map[string]freehold.Allocator{
		"copies":   alloctest.New(t),
		"moves":    mover{alloctest.New(t)},
		"in place": newRoomy(t),
		"rounds":   rounder{alloctest.New(t)},
		"limited":  freehold.NewLimit(rounder{mover{alloctest.New(t)}}, 1<<30),
	}
}

// rounder rounds blocks up to multiples of 64 bytes. Its GoodSize says so.
type rounder struct{ freehold.Allocator }

func (rounder) GoodSize(size int) int { return (size + 63) &^ 63 }

func TestAppendOfNothing(t *testing.T) {
	a := alloctest.New(t)
	if s, err := freehold.Append[int](a, nil); s != nil || err != nil {
		t.Errorf("to nil: %v, %v", s, err)
	}
	s := freehold.Must(freehold.MakeSlice[int](a, 3))
	r := freehold.Must(freehold.Append(a, s))
	if &r[0] != &s[0] || len(r) != 3 {
		t.Errorf("to a full slice: %v", r)
	}
	freehold.FreeSlice(a, r)
}

// TestAppendOfItself: if v is in the block of s and the block moves, Append reads v
// at its new address.
func TestAppendOfItself(t *testing.T) {
	for name, a := range growers(t) {
		for _, c := range []struct {
			why           string
			len, from, to int
		}{
			{why: "all of it", len: 5, from: 0, to: 5},
			{why: "its first element", len: 5, from: 0, to: 1},
			{why: "its last element", len: 5, from: 4, to: 5},
			{why: "its middle", len: 5, from: 1, to: 4},
			{why: "what lies between its len and cap", len: 2, from: 2, to: 5},
			{why: "what begins in it and ends behind its len", len: 3, from: 1, to: 5},
			{why: "many", len: 5000, from: 17, to: 4000},
		} {
			full := freehold.Must(freehold.MakeSlice[odd](a, max(5, c.len)))
			for i := range full {
				full[i] = odd{byte(i), byte(i >> 8), 9}
			}
			want := append(slices.Clone(full[:c.len:c.len]), full[c.from:c.to]...)
			got := freehold.Must(freehold.Append(a, full[:c.len], full[c.from:c.to]...))
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s: %v, want %v", name, c.why, got, want)
			}
			freehold.FreeSlice(a, got)
		}
	}
}

// The memory behind a slice's block is not part of it.
func TestAppendOfTheNeighbour(t *testing.T) {
	a := arena.New(alloctest.New(t), nil)
	defer a.Close()
	s := freehold.Must(freehold.Clone(a, []byte("0123456789abcdef")))
	v := freehold.Must(freehold.Clone(a, []byte("0123")))
	if &v[0] != (*byte)(unsafe.Add(unsafe.Pointer(&s[0]), len(s))) {
		t.Fatal("the slices are no neighbours")
	}
	if got := freehold.Must(freehold.Append(a, s, v...)); string(got) != "0123456789abcdef0123" {
		t.Errorf("%q", got)
	}
}

func TestAppendOverflow(t *testing.T) {
	a := alloctest.New(t)
	s := freehold.Must(freehold.MakeSlice[struct{}](a, math.MaxInt))
	r, err := freehold.Append(a, s, struct{}{}, struct{}{})
	want := fmt.Sprintf("freehold: out of memory: %d elements of 0 bytes are more than an int can hold", uint(math.MaxInt)+2)
	if err == nil || err.Error() != want || !errors.Is(err, freehold.ErrOutOfMemory) || len(r) != math.MaxInt {
		t.Errorf("len %d, error %v", len(r), err)
	}
}

func TestAppendErrorLeavesTheSliceAlone(t *testing.T) {
	limit := freehold.NewLimit(alloctest.New(t), 100)
	s := freehold.Must(freehold.Append[byte](limit, nil, []byte("0123456789abcdef0123456789abcdef")...))
	r, err := freehold.Append(limit, s[:31], bytes.Repeat([]byte{'x'}, 100)...)
	if !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Fatalf("error %v", err)
	}
	if string(r) != "0123456789abcdef0123456789abcde" || &r[0] != &s[0] || cap(r) != cap(s) {
		t.Errorf("%q, cap %d", r, cap(r))
	}
	freehold.FreeSlice(limit, r)
}

// TestAppendTakesWhatFits: where there is no room for the usual growth, a block grows by
// a quarter of it, a sixteenth and so on, down to the needed bytes.
func TestAppendTakesWhatFits(t *testing.T) {
	for _, tt := range []struct{ maxBytes, capacity int }{ // the copy needs room for 40 bytes and the capacity
		{120, 80}, {119, 50}, {90, 50}, {89, 43}, {83, 43}, {82, 41}, {81, 41}, {80, 0},
	} {
		limit := freehold.NewLimit(alloctest.New(t), tt.maxBytes)
		s := freehold.Must(freehold.Clone(limit, []byte("0123456789012345678901234567890123456789")))
		s, err := freehold.Append(limit, s, 'x')
		switch {
		case tt.capacity == 0:
			if !errors.Is(err, freehold.ErrOutOfMemory) || len(s) != 40 {
				t.Errorf("limit of %d: %d bytes, %v", tt.maxBytes, len(s), err)
			}
		case err != nil || cap(s) != tt.capacity || string(s) != "0123456789012345678901234567890123456789x":
			t.Errorf("limit of %d: %q in %d bytes, want %d; %v", tt.maxBytes, s, cap(s), tt.capacity, err)
		}
		freehold.FreeSlice(limit, s)

		words := freehold.NewLimit(alloctest.New(t), 8*tt.maxBytes) // whole elements
		w := freehold.Must(freehold.MakeSlice[uint64](words, 40))
		if w, _ = freehold.Append(words, w, 1); tt.capacity > 0 && cap(w) < 41 || cap(w) > tt.maxBytes-40 {
			t.Errorf("limit of %d words: %d of them", tt.maxBytes, cap(w))
		}
		freehold.FreeSlice(words, w)
	}
}

// TestAppendIsAmortised: a million appends use few blocks, and their sum is not much
// larger than the last one.
func TestAppendIsAmortised(t *testing.T) {
	a := freehold.NewTagged(alloctest.New(t), "")
	var s []uint64
	var err error
	moved := 0
	for i := range 1 << 20 {
		before := cap(s)
		if s, err = freehold.Append(a, s, uint64(i)); err != nil {
			t.Fatal(err)
		}
		if cap(s) != before {
			moved += before
		}
	}
	if c := a.Counts(); c.Allocs > 40 || moved > 4*len(s) || cap(s) > 2*len(s) {
		t.Errorf("%d blocks, %d elements moved, cap %d", c.Allocs, moved, cap(s))
	}
	freehold.FreeSlice(a, s)
}

func TestGrowthOfABlock(t *testing.T) {
	for _, c := range []struct {
		size, want int
		why        string
	}{
		{0, 0, "a first block is as large as its elements"},
		{3, 6, "small blocks double"},
		{64<<10 - 1, 128<<10 - 2, "just below the bound, too"},
		{64 << 10, 96 << 10, "from there on, by half"},
		{math.MaxInt / 3 * 2, math.MaxInt / 3 * 3, "the largest that can grow by half"},
		{math.MaxInt - 1, math.MaxInt - 1, "no more can be counted"},
	} {
		if got := freehold.GrownBytes(c.size); got != c.want {
			t.Errorf("of %d bytes: %d, want %d: %s", c.size, got, c.want, c.why)
		}
	}
}

// FuzzAppend reads its input as a program: each byte is an operation and its argument. Append, Clone
// and MakeSlice give the results of Go's append, for elements of several sizes.
func FuzzAppend(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{255, 254, 253, 128, 129, 64, 0, 200})
	f.Add(bytes.Repeat([]byte{0xF8, 0x89, 0x92, 0x43, 0x8A}, 4))
	f.Fuzz(func(t *testing.T, prog []byte) {
		prog = prog[:min(len(prog), 100)] // an operation may add 1000 elements, and all are compared after each
		for name, a := range growers(t) {
			t.Run(name, func(t *testing.T) {
				testAppend(t, a, prog, func(i int) byte { return byte(i) })
				testAppend(t, a, prog, func(i int) uint64 { return uint64(i) })
				testAppend(t, a, prog, func(i int) odd { return odd{byte(i), byte(i >> 8), 3} })
				testAppend(t, a, prog, func(i int) point { return point{float64(i), 1, 2} })
				testAppend(t, a, prog, func(i int) struct{} { return struct{}{} })
			})
		}
	})
}

func testAppend[T comparable](t *testing.T, a freehold.Allocator, prog []byte, value func(i int) T) {
	t.Helper()
	var got, want []T
	size := int(unsafe.Sizeof(*new(T)))
	for _, op := range prog {
		had := cap(got)
		switch n := int(op >> 3); op & 7 {
		case 0, 1: // from elsewhere
			v := make([]T, n*n/8)
			for i := range v {
				v[i] = value(len(want) + i)
			}
			want = append(want, v...)
			got = freehold.Must(freehold.Append(a, got, v...))
		case 2: // one by one
			for i := range 3 * n {
				want = append(want, value(i))
				got = freehold.Must(freehold.Append(a, got, value(i)))
			}
		case 3, 4: // from itself
			from := len(want) * n / 32
			to := min(len(want), from+1000)
			want = append(want, want[from:to]...)
			got = freehold.Must(freehold.Append(a, got, got[from:to]...))
		case 5: // shorter
			want = want[:len(want)*n/32]
			got = got[:len(want)]
		case 6: // a copy of its own
			c := freehold.Must(freehold.Clone(a, got))
			freehold.FreeSlice(a, got)
			got = c
		case 7: // a new one
			freehold.FreeSlice(a, got)
			want, got = nil, freehold.Must(freehold.MakeSlice[T](a, 0))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %#x of %#x: %v, want %v", op, prog, got, want)
		}
		if _, ok := a.(rounder); ok && op&7 < 5 && cap(got) > had && size > 0 && 64%size == 0 && cap(got)*size%64 != 0 {
			t.Fatalf("a block of %d bytes wastes what its class rounds up", cap(got)*size)
		}
	}
	freehold.FreeSlice(a, got)
}

// sliceOrError frees a slice, which is nil if there is an error.
func sliceOrError[T any](t *testing.T, a freehold.Allocator, s []T, err error) error {
	if (s == nil) != (err != nil) {
		t.Errorf("%v, %v", s, err)
	}
	freehold.FreeSlice(a, s)
	return err
}

// TestEveryFailureIsReturned makes each allocation of each function fail, with all
// later ones or alone. On an error nothing leaks, which alloctest.New checks, and
// the operations verify the contents.
func TestEveryFailureIsReturned(t *testing.T) {
	operations := []struct {
		name string
		call func(t *testing.T, a freehold.Allocator) error
	}{
		{"New", func(t *testing.T, a freehold.Allocator) error {
			p, err := freehold.New[point](a)
			if (p == nil) != (err != nil) {
				t.Errorf("New: %p, %v", p, err)
			}
			freehold.Free(a, p)
			return err
		}},
		{"MakeSlice", func(t *testing.T, a freehold.Allocator) error {
			s, err := freehold.MakeSlice[point](a, 10)
			return sliceOrError(t, a, s, err)
		}},
		{"Grow", func(t *testing.T, a freehold.Allocator) error {
			s, err := freehold.Append(a, []int(nil), 1, 2, 3)
			for range 3 {
				if err == nil {
					s, err = freehold.Grow(a, s, 2*cap(s))
				}
			}
			if len(s) != 0 && !slices.Equal(s, []int{1, 2, 3}) {
				t.Errorf("Grow: %v, %v", s, err)
			}
			freehold.FreeSlice(a, s)
			return err
		}},
		{"Clone", func(t *testing.T, a freehold.Allocator) error {
			s, err := freehold.Clone(a, []odd{{1}, {2}})
			return sliceOrError(t, a, s, err)
		}},
		{"CloneString", func(t *testing.T, a freehold.Allocator) error {
			s, err := freehold.CloneString(a, "string")
			if (s == "") != (err != nil) {
				t.Errorf("CloneString: %q, %v", s, err)
			}
			freehold.FreeString(a, s)
			return err
		}},
		{"Append", func(t *testing.T, a freehold.Allocator) error {
			var s []int
			var err error
			for i := range 1000 {
				if s, err = freehold.Append(a, s, i); err != nil {
					break
				}
			}
			for i := range s {
				if s[i] != i {
					t.Fatalf("Append: element %d is %d, %v", i, s[i], err)
				}
			}
			freehold.FreeSlice(a, s)
			return err
		}},
		{"Realloc", func(t *testing.T, a freehold.Allocator) error {
			var b []byte
			for _, size := range []int{10, 1000, 20, 5000, 0, 7} {
				r, err := freehold.Realloc(a, b, size, 8)
				if err != nil {
					r = b
				}
				if kept := min(len(b), size); !bytes.Equal(r[:kept], bytes.Repeat([]byte{'r'}, kept)) {
					t.Fatalf("Realloc to %d: %q, %v", size, r, err)
				}
				if b = r; err != nil {
					a.Free(b)
					return err
				}
				copy(b, bytes.Repeat([]byte{'r'}, size))
			}
			a.Free(b)
			return nil
		}},
	}
	for _, o := range operations {
		for name, fail := range map[string]func(freehold.Allocator, int) freehold.Allocator{
			"after": alloctest.FailAfter, "once": alloctest.FailOnce,
		} {
			for kind := range growers(t) {
				failures := 0
				for ; ; failures++ {
					err := o.call(t, fail(growers(t)[kind], failures))
					if err == nil {
						break
					}
					if !errors.Is(err, freehold.ErrOutOfMemory) {
						t.Fatalf("%s, failing %s %d: %v", o.name, name, failures, err)
					}
				}
				if failures == 0 || failures > 40 {
					t.Errorf("%s on an allocator that %s: %d failures", o.name, kind, failures)
				}
			}
		}
	}
}

func TestTypedFunctionsAllocateNothingOnTheGoHeap(t *testing.T) {
	if asan.Enabled {
		t.Skip("variables escape in instrumented code")
	}
	watch.LendGoMemory(1) // as that of a slot is
	defer watch.LendGoMemory(-1)
	slot := newSlot()
	for name, a := range map[string]freehold.Allocator{
		"slot":     slot,
		"limit":    freehold.NewLimit(slot, 1<<20),
		"fallback": freehold.NewFallback(slot, newSlot()),
		"locked":   freehold.NewLocked(slot),
	} {
		text := strings.Repeat("text", 10)
		for call, f := range map[string]func(){
			"New":         func() { freehold.Free(a, freehold.Must(freehold.New[point](a))) },
			"New size 0":  func() { freehold.Free(a, freehold.Must(freehold.New[struct{}](a))) },
			"MakeSlice":   func() { freehold.FreeSlice(a, freehold.Must(freehold.MakeSlice[point](a, 9))) },
			"CloneString": func() { freehold.FreeString(a, freehold.Must(freehold.CloneString(a, text))) },
			"Append": func() {
				var s []int
				for i := range 100 {
					s = freehold.Must(freehold.Append(a, s, i, i, i))
				}
				freehold.FreeSlice(a, freehold.Must(freehold.Clone(a, s)))
			},
			"Ptr": func() {
				p := freehold.Must(freehold.New[node](a))
				p.next = freehold.PtrTo(p)
				freehold.Free(a, p.next.Get())
			},
		} {
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%s on %s: %v allocations", call, name, n)
			}
		}
	}
}

func BenchmarkNew(b *testing.B) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	benchmarkNew[[2]uint64](b, heap)
	benchmarkNew[[8]uint64](b, heap)
	benchmarkNew[[128]uint64](b, heap)
}

// benchmarkNew: the row of "slot" is the cost of New and Free alone. The row of the
// Go heap includes its share of collections.
func benchmarkNew[T any](b *testing.B, heap *freehold.Heap) {
	size := unsafe.Sizeof(*new(T))
	for _, c := range []struct {
		of string
		a  freehold.Allocator
	}{{"slot", newSlot()}, {"heap", heap}} {
		b.Run(fmt.Sprintf("size=%d/of=%s", size, c.of), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := freehold.New[T](c.a)
				if err != nil {
					b.Fatal(err)
				}
				freehold.Free(c.a, p)
			}
		})
	}
	b.Run(fmt.Sprintf("size=%d/of=go", size), func(b *testing.B) {
		b.ReportAllocs()
		var p *T
		for b.Loop() {
			p = new(T)
			sink = p
		}
	})
}

var sink any
