package track_test

import (
	"errors"
	"math/bits"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/track"
)

func checkPointers(t testing.TB, h *freehold.Heap) []track.GoPointer {
	t.Helper()
	all, err := track.CheckPointers(h)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type node struct {
	key  freehold.String
	tags freehold.Slice[int]
	next freehold.Ptr[node]
	n    [4]uint64
}

// The typed functions store no pointers into the Go heap, whichever allocator the memory is
// from.
func TestTypedMemoryHasNoGoPointers(t *testing.T) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	a := arena.New(h, nil)
	defer a.Close()
	p := pool.New[node](h, nil)
	defer p.Close()
	odd := uint64(0x9e3779b97f4a7c15)
	if bits.UintSize == 32 {
		odd = 1 // halves of multiples of the other may be addresses of the Go heap
	}
	for _, from := range []freehold.Allocator{h, a} {
		var last *node
		for i := range 100 {
			n := freehold.Must(freehold.New[node](from))
			n.key = freehold.StringOf(freehold.Must(freehold.CloneString(from, "a key")))
			n.tags = freehold.SliceOf(freehold.Must(freehold.MakeSlice[int](from, i)))
			n.next, last = freehold.PtrTo(last), n
			n.n = [4]uint64{1, 1 << 20, 0xdeadbeef, uint64(i) * odd}
			freehold.Must(p.Get()).next = freehold.PtrTo(last)
		}
	}
	for _, g := range checkPointers(t, h) {
		t.Error(g)
	}
}

func TestCheckPointersFindsWhatUnsafeCodeStores(t *testing.T) {
	sampleAt(t, 1)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "planted"})
	defer h.Close()
	a := arena.New(h, nil)
	defer a.Close()
	value := new(int)
	for i, from := range []freehold.Allocator{h, a} {
		through := []string{"", " through arena.(*Arena).Zeroed"}[i]
		b := freehold.Must(from.Zeroed(100, 8))
		*(**int)(unsafe.Pointer(&b[16])) = value
		all := checkPointers(t, h)
		if len(all) != i+1 {
			t.Fatalf("%d words, want %d: %v", len(all), i+1, all)
		}
		var found *track.GoPointer
		for _, g := range all {
			if g.Block+uintptr(g.Offset) == uintptr(unsafe.Pointer(&b[16])) {
				found = &g
			}
		}
		switch {
		case found == nil:
			t.Fatalf("the word is not among %v", all)
		case found.Word != uintptr(unsafe.Pointer(value)) || found.Heap != "planted":
			t.Errorf("%+v", *found)
		case from == h && functionOf(found.Stack) != t.Name():
			t.Errorf("the stack begins with %s, not with the caller", functionOf(found.Stack))
		}
		for _, part := range []string{`heap "planted": byte `, " looks like a pointer into the Go heap\nallocated" + through + " at:\n\t", "track_test.TestCheckPointersFindsWhatUnsafeCodeStores\n\t\t", "pointers_test.go:"} {
			if s := found.String(); !strings.Contains(s, part) {
				t.Errorf("%q is not in:\n%s", part, s)
			}
		}
	}
	track.SetSampleRate(0)
	b := freehold.Must(h.Zeroed(100, 8))
	*(**int)(unsafe.Pointer(&b[0])) = value
	for _, g := range checkPointers(t, h) {
		if s := g.String(); g.Block == uintptr(unsafe.Pointer(&b[0])) && g.Offset == 0 && strings.Contains(s, "\n") {
			t.Errorf("a block that is not sampled: %s", s)
		}
	}
}

func TestCheckPointersOfAClosedHeap(t *testing.T) {
	h := freehold.NewHeap(nil)
	b := freehold.Must(h.Zeroed(100, 8))
	*(**int)(unsafe.Pointer(&b[0])) = new(int)
	h.Close()
	if all := checkPointers(t, h); len(all) != 0 {
		t.Error(all)
	}
}

func TestCheckPointersOfAZeroHeapPanics(t *testing.T) {
	panics.Want(t, "freehold: track.CheckPointers: zero value: NewHeap makes a Heap", func() { track.CheckPointers(new(freehold.Heap)) })
}

func BenchmarkCheckPointers(b *testing.B) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	const bytes = 16 << 20
	for i := range bytes / 64 {
		s := freehold.Must(freehold.MakeSlice[uint64](h, 8))
		for j := range s {
			s[j] = uint64(i*j) << 20
		}
	}
	b.SetBytes(bytes)
	for b.Loop() {
		if all := checkPointers(b, h); len(all) > 0 {
			b.Fatal(all)
		}
	}
}
