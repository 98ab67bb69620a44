package misuse

import (
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

var memoryPrograms = []program{
	{"read after Free", caught{guard: guarded("use after free"), asan: sanitized},
		func(w *world) { b := w.alloc(small); w.a.Free(b); w.sink = b[0] },
		func(w *world) { b := w.alloc(small); w.sink = b[0]; w.a.Free(b) }},
	{"write after Free, then an Alloc of the same size", caught{guard: guarded("use after free"), poison: panics("was written after its Free"), asan: sanitized}.andInTests(reports("a write after Free")),
		func(w *world) { b := w.alloc(small); w.a.Free(b); b[0] = 1; w.a.Free(w.alloc(small)) },
		func(w *world) { b := w.alloc(small); b[0] = 1; w.a.Free(b); w.a.Free(w.alloc(small)) }},
	{"write after Free of a large block, then an Alloc of the same size", caught{guard: guarded("use after free"), poison: panics("was written after its Free"), asan: sanitized}.andInTests(reports("a write after Free")),
		func(w *world) { b := w.alloc(large); w.a.Free(b); b[large-1] = 1; w.a.Free(w.alloc(large)) },
		func(w *world) { b := w.alloc(large); b[large-1] = 1; w.a.Free(b); w.a.Free(w.alloc(large)) }},
	{"write after Free, beside the block's next owner", caught{guard: guarded("use after free"), race: races},
		func(w *world) {
			b := w.alloc(small)
			w.a.Free(b)
			c := w.again(b)
			atOnce(func() { touch(b) }, func() { touch(c) })
		},
		func(w *world) {
			b := w.alloc(small)
			c := w.alloc(small)
			atOnce(func() { touch(b) }, func() { touch(c) })
			w.a.Free(b)
			w.a.Free(c)
		}},
	{"write of a string's bytes after FreeString", caught{guard: guarded("use after free"), poison: panics("was written after its Free"), asan: sanitized}.andInTests(reports("a write after Free")),
		func(w *world) {
			s := freehold.Must(freehold.CloneString(w.a, "text"))
			freehold.FreeString(w.a, s)
			*unsafe.StringData(s) = 'T'
		},
		func(w *world) {
			s := freehold.Must(freehold.CloneString(w.a, "text"))
			*unsafe.StringData(s) = 'T'
			freehold.FreeString(w.a, s)
		}},
	{"read after Free, then an Alloc of the same size", caught{guard: guarded("use after free")},
		func(w *world) { b := w.alloc(small); w.a.Free(b); c := w.again(b); w.sink = b[0]; w.a.Free(c) },
		func(w *world) { b := w.alloc(small); w.sink = b[0]; w.a.Free(b); w.a.Free(w.alloc(small)) }},
	{"write after Free", caught{guard: guarded("use after free"), poison: panics("was written after its Free"), asan: sanitized}.andInTests(reports("a write after Free")),
		func(w *world) { b := w.alloc(small); w.a.Free(b); b[0] = 1 },
		func(w *world) { b := w.alloc(small); b[0] = 1; w.a.Free(b) }},
	{"write after Free to the block's next owner, which reads", caught{guard: guarded("use after free")},
		func(w *world) {
			b := w.alloc(small)
			w.a.Free(b)
			c := w.again(b)
			clear(c)
			b[0] = 1
			w.look(c)
			w.a.Free(c)
		},
		func(w *world) {
			b := w.alloc(small)
			b[0] = 1
			w.a.Free(b)
			c := w.again(b)
			clear(c)
			w.look(c)
			w.a.Free(c)
		}},
	{"read of a large block after Free", caught{guard: guarded("use after free"), asan: sanitized},
		func(w *world) { b := w.alloc(large); w.a.Free(b); w.sink = b[50000] },
		func(w *world) { b := w.alloc(large); w.sink = b[50000]; w.a.Free(b) }},
	{"write past the end", caught{guard: panics("1 byte past the end"), poison: panics("was written 1 byte beyond its end"), asan: sanitized}.andInTests(reports("a write 1 byte after the end")),
		func(w *world) { b := w.alloc(small); *at(unsafe.Pointer(&b[0]), small) = 1; w.a.Free(b) },
		func(w *world) { b := w.alloc(small); *at(unsafe.Pointer(&b[0]), small-1) = 1; w.a.Free(b) }},
	{"write past the end of a large block, into the rest of its last page", caught{guard: guarded("1 byte past the end"), poison: panics("was written 1 byte beyond its end"), asan: sanitized}.andInTests(reports("a write 1 byte after the end")),
		func(w *world) { b := w.alloc(large); *at(unsafe.Pointer(&b[0]), large) = 1; w.a.Free(b) },
		func(w *world) { b := w.alloc(large); *at(unsafe.Pointer(&b[0]), large-1) = 1; w.a.Free(b) }},
	{"write past the end, into the next block", caught{guard: guarded("1 byte past the end"), poison: panics("was written 1 byte beyond its end"), asan: sanitized}.andInTests(reports("a write 1 byte after the end")),
		func(w *world) { b := w.alloc(class); *at(unsafe.Pointer(&b[0]), class) = 1; w.a.Free(b) },
		func(w *world) { b := w.alloc(class); *at(unsafe.Pointer(&b[0]), class-1) = 1; w.a.Free(b) }},
	{"write 64 bytes past the end", caught{guard: guarded("64 bytes past the end")}.andInTests(reports("after the end")),
		func(w *world) { b := w.alloc(small); *at(unsafe.Pointer(&b[0]), small+63) = 1; w.a.Free(b) },
		func(w *world) { b := w.alloc(small + 64); *at(unsafe.Pointer(&b[0]), small+63) = 1; w.a.Free(b) }},
	{"read past the end", caught{asan: sanitized},
		func(w *world) { b := w.alloc(small); w.sink = *at(unsafe.Pointer(&b[0]), small); w.a.Free(b) },
		func(w *world) { b := w.alloc(small); w.sink = *at(unsafe.Pointer(&b[0]), small-1); w.a.Free(b) }},
	{"read past the end, of the next block", caught{guard: guarded("1 byte past the end"), asan: sanitized},
		func(w *world) { b := w.alloc(class); w.sink = *at(unsafe.Pointer(&b[0]), class); w.a.Free(b) },
		func(w *world) { b := w.alloc(class); w.sink = *at(unsafe.Pointer(&b[0]), class-1); w.a.Free(b) }},
	{"write before the beginning", caught{guard: panics("1 byte before the beginning")}.andInTests(reports("a write 1 byte before the beginning")),
		func(w *world) { b := w.alloc(small); *at(unsafe.Pointer(&b[0]), -1) = 1; w.a.Free(b) },
		func(w *world) { b := w.alloc(small); *at(unsafe.Pointer(&b[0]), 0) = 1; w.a.Free(b) }},
	{"write 5000 bytes before the beginning", caught{guard: guarded("underflow")},
		func(w *world) { b := w.alloc(small); *at(unsafe.Pointer(&b[0]), -5000) = 1; w.a.Free(b) },
		func(w *world) { b := w.alloc(small + 5000); *at(unsafe.Pointer(&b[5000]), -5000) = 1; w.a.Free(b) }},
	{"a block that is never freed", caught{leak: leaks(`1 block, 100 bytes of heap "guilty", allocated at:`)}.andInTests(reports("leak of 100 bytes")),
		func(w *world) { w.alloc(small) },
		func(w *world) { w.a.Free(w.alloc(small)) }},
	{"a Go pointer in a block, stored by unsafe code", always(points("byte 8 of the block of 100 bytes")),
		func(w *world) { b := w.alloc(small); *(**int)(unsafe.Pointer(&b[8])) = new(int) },
		func(w *world) {
			b := w.alloc(small)
			*(*freehold.Ptr[byte])(unsafe.Pointer(&b[8])) = freehold.PtrTo(&b[0])
			w.look(b)
			w.a.Free(b)
		}},
	{"a Go pointer in a large block, stored by unsafe code", always(points("byte 50000 of the block of 100000 bytes")),
		func(w *world) { b := w.alloc(large); *(**int)(unsafe.Pointer(&b[50000])) = new(int) },
		func(w *world) { b := w.alloc(large); *(**int)(unsafe.Pointer(&b[50000])) = nil; w.a.Free(b) }},
	{"a Go pointer in an arena's block, stored by unsafe code", always(points("looks like a pointer into the Go heap")),
		func(w *world) { *(**int)(unsafe.Pointer(&take(arena.New(w.a, nil))[8])) = new(int) },
		inArena(func(w *world, a *arena.Arena) { *(**byte)(unsafe.Pointer(&take(a)[8])) = &take(a)[0] })},
	{"a slice of Go memory in a block, stored by unsafe code", always(points("byte 0 of the block of 24 bytes")),
		func(w *world) { b := w.alloc(24); *(*[]int)(unsafe.Pointer(&b[0])) = make([]int, 10) },
		func(w *world) {
			s := freehold.Must(freehold.MakeSlice[int](w.a, 10))
			b := w.alloc(24)
			*(*freehold.Slice[int])(unsafe.Pointer(&b[0])) = freehold.SliceOf(s)
			freehold.FreeSlice(w.a, s)
			w.a.Free(b)
		}},
	{"PtrTo of a Go variable", inDebugModes(panics("PtrTo: 0x")),
		func(w *world) { freehold.PtrTo(new([small]byte)) },
		func(w *world) { freehold.Free(w.heap, freehold.PtrTo(freehold.Must(freehold.New[int](w.heap))).Get()) }},
	{"SliceOf of a slice from make", inDebugModes(panics("SliceOf: 0x")),
		func(w *world) { freehold.SliceOf(make([]byte, small, small+int(w.sink))) },
		func(w *world) { b := w.alloc(small); freehold.SliceOf(b[:5]); w.a.Free(b) }},
	{"StringOf of a part of a Go slice", inDebugModes(panics("StringOf: 0x")),
		func(w *world) { freehold.StringOf(make([]byte, small, small+int(w.sink))[:5]) },
		func(w *world) {
			s := freehold.Must(freehold.CloneString(w.a, "key"))
			freehold.StringOf(s[:2])
			freehold.FreeString(w.a, s)
		}},
	{"Get of a Slice in a freed block", caught{poison: panics("Slice.Get: use after free")},
		func(w *world) {
			p := freehold.Must(freehold.New[freehold.Slice[int]](w.a))
			freehold.Free(w.a, p)
			p.Get()
		},
		func(w *world) {
			p := freehold.Must(freehold.New[freehold.Slice[int]](w.a))
			p.Get()
			freehold.Free(w.a, p)
		}},
	{"read after Close of the heap", caught{guard: guarded("use after Close of the heap"), plain: faults},
		func(w *world) { b := w.alloc(small); w.heap.Close(); w.sink = b[0] },
		func(w *world) { b := w.alloc(small); w.sink = b[0]; w.heap.Close() }},
	{"write to a large block after Close of the heap", caught{guard: guarded("use after Close of the heap"), plain: faults},
		func(w *world) { b := w.alloc(large); w.heap.Close(); b[50000] = 1 },
		func(w *world) { b := w.alloc(large); b[50000] = 1; w.heap.Close() }},
	{"two goroutines write to one block", caught{race: races},
		func(w *world) {
			b := w.alloc(small)
			atOnce(func() { touch(b) }, func() { touch(b) })
		},
		func(w *world) {
			b := w.alloc(small)
			var mu sync.Mutex
			set := func() {
				mu.Lock()
				defer mu.Unlock()
				touch(b)
			}
			atOnce(set, set)
			w.a.Free(b)
		}},
	{"free while another goroutine writes", caught{},
		func(w *world) {
			b := w.alloc(small)
			atOnce(func() { b[0] = 1 }, func() { w.a.Free(b) })
		},
		func(w *world) {
			b := w.alloc(small)
			atOnce(func() { b[0] = 1 }, func() {})
			w.a.Free(b)
		}},
}
