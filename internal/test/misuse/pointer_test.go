package misuse

import (
	"math"
	"unsafe"

	"github.com/freehold-go/freehold"
)

var pointerPrograms = []program{
	{"FreePointer twice", always(panics("double free")),
		func(w *world) { p := w.heap.Malloc(small); w.heap.FreePointer(p); w.heap.FreePointer(p) },
		func(w *world) { w.heap.FreePointer(w.heap.Malloc(small)); w.heap.FreePointer(nil) }},
	{"FreePointer of a large block twice", always(panics("double free")),
		func(w *world) { p := w.heap.Malloc(large); w.heap.FreePointer(p); w.heap.FreePointer(p) },
		func(w *world) { w.heap.FreePointer(w.heap.Malloc(large)) }},
	{"FreePointer of the middle of a block", always(panics("points 16 bytes into")),
		func(w *world) { w.heap.FreePointer(unsafe.Add(w.heap.Malloc(small), 16)) },
		func(w *world) { p := w.heap.Malloc(small); *at(p, 16) = 1; w.heap.FreePointer(p) }},
	{"FreePointer of a Go variable", always(panics("not from a freehold heap")),
		func(w *world) { w.heap.FreePointer(unsafe.Pointer(new(int))) },
		func(w *world) { w.heap.FreePointer(w.heap.Calloc(1, 8)) }},
	{"FreePointer to another heap", always(panics("belongs to another heap")),
		func(w *world) {
			other := freehold.NewHeap(nil)
			defer other.Close()
			w.heap.FreePointer(other.Malloc(small))
		},
		func(w *world) {
			other := freehold.NewHeap(nil)
			defer other.Close()
			other.FreePointer(other.Malloc(small))
		}},
	{"FreePointer after Close", always(panics("is closed")),
		func(w *world) { p := w.heap.Malloc(small); w.heap.Close(); w.heap.FreePointer(p) },
		func(w *world) { p := w.heap.Malloc(small); w.heap.FreePointer(p); w.heap.Close() }},
	{"ReallocPointer after FreePointer", always(panics("double free")),
		func(w *world) { p := w.heap.Malloc(small); w.heap.FreePointer(p); w.heap.ReallocPointer(p, 200) },
		func(w *world) { w.heap.FreePointer(w.heap.ReallocPointer(w.heap.Malloc(small), 200)) }},
	{"FreePointer of a block that ReallocPointer has moved", always(panics("double free")),
		func(w *world) { p := w.heap.Malloc(small); w.heap.ReallocPointer(p, 3000); w.heap.FreePointer(p) },
		func(w *world) { p := w.heap.Malloc(small); p = w.heap.ReallocPointer(p, 3000); w.heap.FreePointer(p) }},
	{"UsableSize after FreePointer", always(panics("Heap.UsableSize: 0x")),
		func(w *world) { p := w.heap.Malloc(small); w.heap.FreePointer(p); w.heap.UsableSize(p) },
		func(w *world) { p := w.heap.Malloc(small); w.heap.UsableSize(p); w.heap.FreePointer(p) }},
	{"Malloc of a negative size", always(panics("Heap.Malloc: size -1")),
		func(w *world) { w.heap.Malloc(-1) },
		func(w *world) { w.heap.FreePointer(w.heap.Malloc(0)) }},
	{"Calloc of more than an address can be", always(returnsNil),
		func(w *world) { w.no = w.heap.Calloc(math.MaxInt/2, 3) == nil },
		func(w *world) { p := w.heap.Calloc(2, 3); w.no = p == nil; w.heap.FreePointer(p) }},
	{"Calloc of a negative number", always(panics("Heap.Calloc: n -1")),
		func(w *world) { w.heap.Calloc(-1, 8) },
		func(w *world) { w.heap.FreePointer(w.heap.Calloc(1, 8)) }},
}
