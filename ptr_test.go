package freehold_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func TestReferencesHaveTheSizeThatIsPromised(t *testing.T) {
	const word = unsafe.Sizeof(uintptr(0))
	if n := unsafe.Sizeof(freehold.Ptr[node]{}); n != word {
		t.Errorf("Ptr: %d bytes", n)
	}
	if n := unsafe.Sizeof(freehold.Slice[node]{}); n != 3*word {
		t.Errorf("Slice: %d bytes", n)
	}
	if n := unsafe.Sizeof(freehold.String{}); n != 2*word {
		t.Errorf("String: %d bytes", n)
	}
}

func TestOnlyPtrIsComparable(t *testing.T) {
	for _, c := range []struct {
		t    reflect.Type
		want bool
	}{
		{reflect.TypeFor[freehold.Ptr[node]](), true},
		{reflect.TypeFor[freehold.Slice[node]](), false},
		{reflect.TypeFor[freehold.String](), false},
	} {
		if c.t.Comparable() != c.want {
			t.Errorf("%v is comparable: %t", c.t, !c.want)
		}
	}
}

func TestReferencesOfDifferentTypesDoNotConvert(t *testing.T) {
	if reflect.TypeFor[freehold.Ptr[int]]().ConvertibleTo(reflect.TypeFor[freehold.Ptr[uint]]()) {
		t.Error("Ptr[int] converts to Ptr[uint]")
	}
	if reflect.TypeFor[freehold.Slice[int]]().ConvertibleTo(reflect.TypeFor[freehold.Slice[uint]]()) {
		t.Error("Slice[int] converts to Slice[uint]")
	}
}

func TestZeroReferences(t *testing.T) {
	var p freehold.Ptr[node]
	if p.Get() != nil || !p.IsNil() || p != freehold.PtrTo[node](nil) {
		t.Errorf("Ptr: %v", p.Get())
	}
	var s freehold.Slice[node]
	if s.Get() != nil || s.Len() != 0 || freehold.SliceOf[node](nil).Get() != nil {
		t.Errorf("Slice: %v", s.Get())
	}
	var str freehold.String
	if str.Get() != "" || str.Len() != 0 || freehold.StringOf("").Get() != "" {
		t.Errorf("String: %q", str.Get())
	}
}

func TestPtr(t *testing.T) {
	a := alloctest.New(t)
	x, y := freehold.Must(freehold.New[node](a)), freehold.Must(freehold.New[node](a))
	p := freehold.PtrTo(x)
	if p.Get() != x || p.IsNil() {
		t.Errorf("%p, want %p", p.Get(), x)
	}
	if p != freehold.PtrTo(x) || p == freehold.PtrTo(y) {
		t.Error("references are equal that should not be, or the reverse")
	}
	freehold.Free(a, x)
	freehold.Free(a, y)
}

func TestPtrToAnElement(t *testing.T) {
	a := alloctest.New(t)
	s := freehold.Must(freehold.MakeSlice[point](a, 10))
	freehold.PtrTo(&s[7]).Get().y = 3
	if s[7].y != 3 {
		t.Errorf("%v", s)
	}
	freehold.FreeSlice(a, s)
}

// TestSliceKeepsCapacity: FreeSlice and Append find the block by the capacity.
func TestSliceKeepsCapacity(t *testing.T) {
	a := alloctest.New(t)
	s := freehold.Must(freehold.MakeSlice[odd](a, 10))
	for i := range s {
		s[i][0] = byte(i)
	}
	for _, part := range [][]odd{s, s[:3], s[:0], s[2:5:7], s[9:]} {
		r := freehold.SliceOf(part)
		if g := r.Get(); !slices.Equal(g, part) || cap(g) != cap(part) || r.Len() != len(part) || g == nil {
			t.Errorf("of %v, cap %d: %v, cap %d", part, cap(part), g, cap(g))
		}
	}
	if g := freehold.SliceOf(s[10:]).Get(); g != nil {
		t.Errorf("of a slice without capacity: %v", g)
	}
	freehold.FreeSlice(a, freehold.SliceOf(s[:1]).Get())
}

func TestString(t *testing.T) {
	a := alloctest.New(t)
	s := freehold.Must(freehold.CloneString(a, "key=value"))
	block := freehold.Must(a.Alloc(3, 1))
	copy(block, "xyz")
	if v := freehold.StringOf(block[1:]); v.Get() != "yz" || v.Len() != 2 {
		t.Errorf("bytes of a block became %q", v.Get())
	}
	a.Free(block)
	r := freehold.StringOf(s)
	if r.Get() != "key=value" || r.Len() != 9 {
		t.Errorf("%q, len %d", r.Get(), r.Len())
	}
	if v := freehold.StringOf(s[4:]); v.Get() != "value" {
		t.Errorf("of a part: %q", v.Get())
	}
	if v := freehold.StringOf(s[9:]); v.Get() != "" {
		t.Errorf("of an empty part: %q", v.Get())
	}
	freehold.FreeString(a, r.Get())
}

// TestListOffHeap keeps all of a structure off-heap across collections.
func TestListOffHeap(t *testing.T) {
	a := alloctest.New(t)
	var head freehold.Ptr[node]
	for i := range 1000 {
		n := freehold.Must(freehold.New[node](a))
		n.key = freehold.StringOf(freehold.Must(freehold.CloneString(a, fmt.Sprint("key ", i))))
		n.next = head
		head = freehold.PtrTo(n)
	}
	i := 1000
	for p := head; !p.IsNil(); {
		i--
		n := p.Get()
		if want := fmt.Sprint("key ", i); n.key.Get() != want {
			t.Fatalf("%q, want %q", n.key.Get(), want)
		}
		p = n.next
		freehold.FreeString(a, n.key.Get())
		freehold.Free(a, n)
	}
	if i != 0 {
		t.Errorf("%d nodes are missing", i)
	}
}
