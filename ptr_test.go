package freehold_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
	"github.com/freehold-go/freehold/track"
)

func TestTypesOfReferences(t *testing.T) {
	const word = unsafe.Sizeof(uintptr(0))
	for _, c := range []struct {
		t, other   reflect.Type // other refers to elements of another type
		size       uintptr
		comparable bool
	}{
		{reflect.TypeFor[freehold.Ptr[int]](), reflect.TypeFor[freehold.Ptr[uint]](), word, true},
		{reflect.TypeFor[freehold.Slice[int]](), reflect.TypeFor[freehold.Slice[uint]](), 3 * word, false},
		{reflect.TypeFor[freehold.String](), reflect.TypeFor[string](), 2 * word, false},
	} {
		if c.t.Size() != c.size || c.t.Comparable() != c.comparable || c.t.ConvertibleTo(c.other) {
			t.Errorf("%v: %d bytes, comparable: %t, converts to %v: %t", c.t, c.t.Size(), c.t.Comparable(), c.other, c.t.ConvertibleTo(c.other))
		}
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

// Each mistake is one that the collector makes garbage of.
func TestReferencesToGoMemoryPanicInDebugModes(t *testing.T) {
	if _, err := track.CheckPointers(freehold.Default()); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("blocks are not told from Go memory")
	}
	defer freehold.CheckReferences()()
	const advice = "is in the Go heap or in a goroutine's stack"
	var local node
	body := fmt.Append(nil, "GET /")
	for fn, refer := range map[string]func(){
		"PtrTo of new":       func() { freehold.PtrTo(new([100]int)) },
		"PtrTo of a local":   func() { freehold.PtrTo(&local) },
		"SliceOf of make":    func() { freehold.SliceOf(make([]int, len(body), 99)) },
		"SliceOf of append":  func() { freehold.SliceOf(append([]byte(nil), body...)) },
		"StringOf of a body": func() { freehold.StringOf(body[:3]) },
		"StringOf of Sprint": func() { freehold.StringOf(fmt.Sprint("key ", len(body))) },
	} {
		name, _, _ := strings.Cut(fn, " ")
		panics.Want(t, "freehold: "+name+": 0x..."+advice+"...", refer)
	}
	// Neither freehold's memory nor other off-heap memory is Go's, nor are constants.
	foreign := freehold.Must(vm.Reserve(vm.PageBytes(), vm.PageBytes()))
	if err := vm.Commit(foreign, vm.PageBytes()); err != nil {
		t.Fatal(err)
	}
	defer vm.Decommit(foreign, vm.PageBytes())
	own := freehold.Must(freehold.CloneString(freehold.Default(), "own"))
	fine := []string{own, "a constant"}
	if !watch.IsGoPointer(foreign) { // as it is where package vm takes Go memory, for the race detector
		fine = append(fine, unsafe.String((*byte)(vm.Pointer(foreign)), 5))
	}
	for _, s := range fine {
		if got := freehold.StringOf(s).Get(); got != s {
			t.Errorf("%q, want %q", got, s)
		}
		freehold.PtrTo(unsafe.StringData(s))
		freehold.SliceOf(unsafe.Slice(unsafe.StringData(s), len(s)))
	}
	freehold.FreeString(freehold.Default(), own)

	// Blocks of these are Go memory.
	t.Run("alloctest", func(t *testing.T) {
		freehold.FreeSlice(alloctest.New(t), freehold.SliceOf([]int{}).Get())
		freehold.PtrTo(new([100]int))
	})
	fixed := arena.NewFixed(make([]byte, 1000))
	freehold.PtrTo(new([100]int))
	fixed.Close()
	panics.Want(t, "freehold: PtrTo: ...", func() { freehold.PtrTo(new([100]int)) })
}

// What mode poison leaves in freed memory is no reference.
func TestReferencesInPoisonedMemoryPanic(t *testing.T) {
	var freed [3]uint64
	poison.FillBytes(unsafe.Slice((*byte)(unsafe.Pointer(&freed)), unsafe.Sizeof(freed)), poison.Fill)
	p := unsafe.Pointer(&freed)
	panics.Want(t, "freehold: Slice.Get: use after free: ...", func() { (*freehold.Slice[int])(p).Get() })
	panics.Want(t, "freehold: String.Get: use after free: ...", func() { (*freehold.String)(p).Get() })
	if freehold.PoisonedAddr != 0 {
		panics.Want(t, "freehold: Ptr.Get: use after free: ...", func() { (*freehold.Ptr[int])(p).Get() })
	}
}
