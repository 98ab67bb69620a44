package freehold_test

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold"
)

type (
	withString  struct{ key string }
	withSlice   struct{ xs []point }
	withPointer struct{ next *withPointer }
	withFuncs   struct {
		n int
		f func()
	}
	nested struct{ next struct{ key string } }
	deep   struct {
		a [2]struct{ b [3]struct{ c map[int]int } }
	}
	embedded struct{ withString }
	blank    struct{ _ *int }
	noElems  struct {
		a [0]*int
		b [0]string
		c [3][0]func()
	}
	text    string
	generic [2]freehold.Ptr[withString]
)

func TestPointerFree(t *testing.T) {
	const heap = ", which points into the Go heap; use "
	tests := []struct {
		why  string
		ask  func() error
		want string // "" if T is pointer-free
	}{
		{"numbers", freehold.PointerFree[complex64], ""},
		{"uintptr, on the caller's word", freehold.PointerFree[uintptr], ""},
		{"an empty struct", freehold.PointerFree[struct{}], ""},
		{"arrays of structs", freehold.PointerFree[[4]point], ""},
		{"freehold's references", freehold.PointerFree[node], ""},
		{"a reference to what holds pointers", freehold.PointerFree[generic], ""},
		{"a slice reference", freehold.PointerFree[freehold.Slice[string]], ""},
		{"arrays of no pointers", freehold.PointerFree[noElems], ""},
		{"a mutex", freehold.PointerFree[sync.Mutex], ""},
		{"an atomic number", freehold.PointerFree[atomic.Int64], ""},
		{"a duration", freehold.PointerFree[time.Duration], ""},

		{"a string", freehold.PointerFree[string], "freehold: string: it is a string" + heap + "freehold.String"},
		{"a named string", freehold.PointerFree[text], "freehold: text: it is a string" + heap + "freehold.String"},
		{"a field", freehold.PointerFree[withString], "freehold: withString: field key is a string" + heap + "freehold.String"},
		{"a slice", freehold.PointerFree[withSlice], "freehold: withSlice: field xs is a []point" + heap + "freehold.Slice[point]"},
		{"a slice of slices", freehold.PointerFree[[][]byte], "freehold: [][]uint8: it is a [][]uint8" + heap + "freehold.Slice[[]uint8]"},
		{"a pointer to itself", freehold.PointerFree[withPointer], "freehold: withPointer: field next is a *withPointer" + heap + "freehold.Ptr[withPointer]"},
		{"not the first field", freehold.PointerFree[withFuncs], "freehold: withFuncs: field f is a func" + heap[:len(heap)-len("use ")] + "keep it in a Go slice and store its index"},
		{"a nested field", freehold.PointerFree[nested], "freehold: nested: field next.key is a string" + heap + "freehold.String"},
		{"in arrays", freehold.PointerFree[deep], "freehold: deep: field a[0].b[0].c is a map" + heap[:len(heap)-len("use ")] + "keep it in a Go slice and store its index"},
		{"an array itself", freehold.PointerFree[[3]withString], "freehold: [3]freehold_test.withString: element [0].key is a string" + heap + "freehold.String"},
		{"embedded", freehold.PointerFree[embedded], "freehold: embedded: field withString.key is a string" + heap + "freehold.String"},
		{"blank fields are scanned too", freehold.PointerFree[blank], "freehold: blank: field _ is a *int" + heap + "freehold.Ptr[int]"},
		{"an interface", freehold.PointerFree[error], "freehold: error: it is an interface" + heap + "a concrete type without Go pointers"},
		{"a channel", freehold.PointerFree[chan int], "freehold: chan int: it is a chan" + heap[:len(heap)-len("use ")] + "keep it in a Go slice and store its index"},
		{"an unsafe.Pointer", freehold.PointerFree[unsafe.Pointer], "freehold: Pointer: it is an unsafe.Pointer" + heap + "freehold.Ptr or a uintptr"},
		{"a time", freehold.PointerFree[struct{ at time.Time }], "freehold: struct { at time.Time }: field at is a time.Time" + heap + "its UnixNano"},
		{"an atomic pointer", freehold.PointerFree[atomic.Pointer[int]], "freehold: Pointer[int]: field v is an unsafe.Pointer" + heap + "freehold.Ptr or a uintptr"},
	}
	for range 2 { // the second time from the table, where that remembers
		for _, c := range tests {
			got := ""
			if err := c.ask(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s:\n%q, want\n%q", c.why, got, c.want)
			}
		}
	}
}

// TestPointerFreeAgreesWithTheCollector builds types at random and compares the
// verdict with the word of the type's descriptor that the collector goes by.
func TestPointerFreeAgreesWithTheCollector(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	leaves := []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[int32](), reflect.TypeFor[uintptr](), reflect.TypeFor[complex128](),
		reflect.TypeFor[struct{}](), reflect.TypeFor[node](), reflect.TypeFor[sync.RWMutex](), reflect.TypeFor[[0]string](),
		reflect.TypeFor[string](), reflect.TypeFor[*int](), reflect.TypeFor[any](), reflect.TypeFor[time.Time](),
		reflect.TypeFor[unsafe.Pointer](), reflect.TypeFor[func()](), reflect.TypeFor[chan int](), reflect.TypeFor[map[int]int](),
	}
	var build func(depth int) reflect.Type
	build = func(depth int) reflect.Type {
		switch n := r.IntN(4); {
		case depth > 0 && n == 0:
			return reflect.ArrayOf(r.IntN(3), build(depth-1))
		case depth > 0 && n < 3:
			fields := make([]reflect.StructField, r.IntN(4))
			for i := range fields {
				fields[i] = reflect.StructField{Name: string(rune('A' + i)), Type: build(depth - 1)}
			}
			return reflect.StructOf(fields)
		}
		if n := r.IntN(20); n < len(leaves) {
			return leaves[n]
		}
		return leaves[r.IntN(8)]
	}
	free := 0
	for range 5000 {
		typ := build(4)
		var i any = typ
		descriptor := (*[2]*[2]uintptr)(unsafe.Pointer(&i))[1] // *abi.Type: Size_, PtrBytes
		if descriptor[0] != typ.Size() {
			t.Skip("descriptors look different in this version of Go")
		}
		fault := freehold.FaultOf(typ, "")
		if (fault == "") != (descriptor[1] == 0) {
			t.Fatalf("%v: %q, but %d bytes of it may hold pointers", typ, fault, descriptor[1])
		}
		if fault == "" {
			free++
		}
	}
	if free < 500 || free > 4500 {
		t.Errorf("%d of 5000 types are pointer-free; that tests one side only", free)
	}
}

func BenchmarkPointerFree(b *testing.B) {
	for b.Loop() {
		if freehold.PointerFree[point]() != nil {
			b.Fatal("point holds pointers")
		}
	}
}
