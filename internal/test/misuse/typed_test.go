package misuse

import (
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

// Types with Go pointers, and the off-heap type to store instead of each.
type (
	named   struct{ key string }
	kept    struct{ key freehold.String }
	linked  struct{ next *linked }
	chained struct{ next freehold.Ptr[chained] }
	deep    struct{ in [2]struct{ list []int } }
	flat    struct {
		in [2]struct{ list freehold.Slice[int] }
	}
	dated   struct{ at time.Time }
	stamped struct{ nanoseconds int64 }
)

var typedPrograms = []program{
	{"New of a type with a string", always(panics("New[named]: field key is a string")),
		func(w *world) { freehold.New[named](w.a) },
		func(w *world) { freehold.Free(w.a, freehold.Must(freehold.New[kept](w.a))) }},
	{"New of a type with a pointer", always(panics("New[linked]: field next is a *linked")),
		func(w *world) { freehold.New[linked](w.a) },
		func(w *world) { freehold.Free(w.a, freehold.Must(freehold.New[chained](w.a))) }},
	{"New of a type with a slice deep inside", always(panics("field in[0].list is a []int")),
		func(w *world) { freehold.New[deep](w.a) },
		func(w *world) { freehold.Free(w.a, freehold.Must(freehold.New[flat](w.a))) }},
	{"New of a type with a time.Time", always(panics("field at is a time.Time")),
		func(w *world) { freehold.New[dated](w.a) },
		func(w *world) { freehold.Free(w.a, freehold.Must(freehold.New[stamped](w.a))) }},
	{"MakeSlice of pointers", always(panics("MakeSlice[*int]: it is a *int")),
		func(w *world) { freehold.MakeSlice[*int](w.a, 5) },
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[freehold.Ptr[int]](w.a, 5))) }},
	{"MakeSlice of functions", always(panics("it is a func")),
		func(w *world) { freehold.MakeSlice[func()](w.a, 5) },
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[uint32](w.a, 5))) }},
	{"Append of strings", always(panics("Append[string]: it is a string")),
		func(w *world) { freehold.Append(w.a, nil, "x") },
		func(w *world) {
			s := freehold.Must(freehold.CloneString(w.a, "x"))
			freehold.FreeSlice(w.a, freehold.Must(freehold.Append(w.a, nil, freehold.StringOf(s))))
			freehold.FreeString(w.a, s)
		}},
	{"Clone of interfaces", always(panics("it is an interface")),
		func(w *world) { freehold.Clone(w.a, []any{1}) },
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.Clone(w.a, []int{1}))) }},
	{"a pool of a type with a map", always(panics("pool.New[map[int]int]: it is a map")),
		func(w *world) { pool.New[map[int]int](w.a, nil) },
		func(w *world) { pool.New[[8]int](w.a, nil).Close() }},
	{"MakeSlice of a negative number", always(panics("MakeSlice: n -1")),
		func(w *world) { freehold.MakeSlice[int](w.a, -1) },
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[int](w.a, 0))) }},
	{"MakeSlice of more than an address can be", always(refuses).andInTests(refuses),
		func(w *world) { _, w.err = freehold.MakeSlice[uint64](w.a, math.MaxInt/4) },
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[uint64](w.a, 4))) }},
	{"Free twice", always(panics("double free")).andInTests(panics("in a freed block")),
		func(w *world) {
			p := freehold.Must(freehold.New[chained](w.a))
			freehold.Free(w.a, p)
			freehold.Free(w.a, p)
		},
		func(w *world) { freehold.Free(w.a, freehold.Must(freehold.New[chained](w.a))) }},
	{"Free of a value as another type", always(panics("it has 4 bytes, the block 8")).andInTests(panics("at byte 0 of a block of 8 bytes")),
		func(w *world) { freehold.Free(w.a, (*int32)(unsafe.Pointer(freehold.Must(freehold.New[int64](w.a))))) },
		func(w *world) {
			p := (*int32)(unsafe.Pointer(freehold.Must(freehold.New[int64](w.a))))
			freehold.Free(w.a, (*int64)(unsafe.Pointer(p)))
		}},
	{"Free of a field", always(panics("points 8 bytes into a block of 16 bytes")).andInTests(panics("at byte 8 of a block of 16 bytes")),
		func(w *world) { freehold.Free(w.a, &freehold.Must(freehold.New[[2]int64](w.a))[1]) },
		func(w *world) { p := freehold.Must(freehold.New[[2]int64](w.a)); p[1] = 1; freehold.Free(w.a, p) }},
	{"Free of a Go variable", always(panics("not from a freehold heap")).andInTests(panics("did not hand out")),
		func(w *world) { var v int64; freehold.Free(w.a, &v) },
		func(w *world) { v := freehold.Must(freehold.New[int64](w.a)); freehold.Free(w.a, v) }},
	{"FreeSlice twice", always(panics("double free")).andInTests(panics("in a freed block")),
		func(w *world) {
			s := freehold.Must(freehold.MakeSlice[int](w.a, 9))
			freehold.FreeSlice(w.a, s)
			freehold.FreeSlice(w.a, s)
		},
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[int](w.a, 9))) }},
	{"FreeSlice of s[1:]", always(panics("into a block of 72 bytes")).andInTests(panics("of a block of 72 bytes")),
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[int64](w.a, 9))[1:]) },
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[int64](w.a, 9))[:1]) }},
	{"FreeSlice of s[:n:n]", always(panics("it has 8 bytes, the block 72")).andInTests(panics("at byte 0 of a block of 72 bytes")),
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[int64](w.a, 9))[:1:1]) },
		func(w *world) { freehold.FreeSlice(w.a, freehold.Must(freehold.MakeSlice[int64](w.a, 9))[:0]) }},
	{"FreeSlice of a slice that the built-in append returned", always(panics("was it moved by append?")).andInTests(panics("was it moved by append?")),
		func(w *world) { freehold.FreeSlice(w.a, append(freehold.Must(freehold.MakeSlice[int](w.a, 9)), 1)) },
		func(w *world) {
			freehold.FreeSlice(w.a, freehold.Must(freehold.Append(w.a, freehold.Must(freehold.MakeSlice[int](w.a, 9)), 1)))
		}},
	{"FreeSlice of a slice that slices.Insert returned", always(panics("was it moved by append?")).andInTests(panics("was it moved by append?")),
		func(w *world) {
			freehold.FreeSlice(w.a, slices.Insert(freehold.Must(freehold.MakeSlice[int](w.a, 9)), 4, 1))
		},
		func(w *world) {
			s := freehold.Must(freehold.MakeSlice[int](w.a, 9))
			freehold.FreeSlice(w.a, slices.Insert(s[:8], 4, 1)) // within the slice's capacity
		}},
	{"Append, beyond its capacity, to a slice that the built-in append has moved", always(panics("was it moved by append?")).andInTests(panics("was it moved by append?")),
		func(w *world) {
			s := append(freehold.Must(freehold.MakeSlice[int](w.a, 9)), 1)
			freehold.Append(w.a, s, make([]int, 100)...)
		},
		func(w *world) {
			s := freehold.Must(freehold.Append(w.a, freehold.Must(freehold.MakeSlice[int](w.a, 9)), 1))
			freehold.FreeSlice(w.a, freehold.Must(freehold.Append(w.a, s, make([]int, 100)...)))
		}},
	{"Append, within its capacity, to a slice that the built-in append has moved", caught{leak: leaks(`1 block, 72 bytes of heap "guilty", allocated at:`)}.andInTests(reports("leak of")),
		func(w *world) {
			s := append(freehold.Must(freehold.MakeSlice[int64](w.a, 9)), 1)
			freehold.Append(w.a, s, 1)
		},
		func(w *world) {
			s := freehold.Must(freehold.Append(w.a, freehold.Must(freehold.MakeSlice[int64](w.a, 9)), 1))
			freehold.FreeSlice(w.a, freehold.Must(freehold.Append(w.a, s, 1)))
		}},
	{"FreeSlice of a slice as it was before Append", always(panics("double free")).andInTests(panics("in a freed block")),
		func(w *world) {
			s := freehold.Must(freehold.MakeSlice[int64](w.a, 9))
			freehold.Must(freehold.Append(w.a, s, make([]int64, 100)...))
			freehold.FreeSlice(w.a, s)
		},
		func(w *world) {
			s := freehold.Must(freehold.MakeSlice[int64](w.a, 9))
			freehold.FreeSlice(w.a, freehold.Must(freehold.Append(w.a, s, make([]int64, 100)...)))
		}},
	{"FreeString of a constant", always(panics("not from a freehold heap")).andInTests(panics("did not hand out")),
		func(w *world) { freehold.FreeString(w.a, "constant") },
		func(w *world) { freehold.FreeString(w.a, freehold.Must(freehold.CloneString(w.a, "constant"))) }},
	{"FreeString of a substring", always(panics("it has 5 bytes, the block 8")).andInTests(panics("of a block of 8 bytes")),
		func(w *world) { freehold.FreeString(w.a, freehold.Must(freehold.CloneString(w.a, "constant"))[:5]) },
		func(w *world) {
			s := freehold.Must(freehold.CloneString(w.a, "constant"))
			w.sink = s[:5][0]
			freehold.FreeString(w.a, s)
		}},
	{"Get of a Ptr after Free", caught{guard: guarded("use after free"), asan: sanitized},
		func(w *world) {
			p := freehold.Must(freehold.New[int64](w.a))
			r := freehold.PtrTo(p)
			freehold.Free(w.a, p)
			w.sink = byte(*r.Get())
		},
		func(w *world) {
			p := freehold.Must(freehold.New[int64](w.a))
			w.sink = byte(*freehold.PtrTo(p).Get())
			freehold.Free(w.a, p)
		}},
	{"a Ptr to a Go variable", caught{},
		func(w *world) { w.sink = byte(*freehold.PtrTo(new(int64)).Get()) },
		func(w *world) {
			p := freehold.Must(freehold.New[int64](w.a))
			w.sink = byte(*freehold.PtrTo(p).Get())
			freehold.Free(w.a, p)
		}},
}
