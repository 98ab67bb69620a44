package misuse

import "github.com/freehold-go/freehold"

const (
	small = 100
	large = 100000
	class = 112 // a size class of a heap: a block of this size has no spare bytes
)

var heapPrograms = []program{
	{"double free", always(panics("double free")).andInTests(panics("in a freed block")),
		func(w *world) { b := w.alloc(small); w.a.Free(b); w.a.Free(b) },
		func(w *world) { b := w.alloc(small); w.a.Free(b) }},
	{"double free of a block whose memory has its next owner, of equal length", caught{guard: panics("double free")}.andInTests(panics("in a freed block")),
		func(w *world) { b := w.alloc(small); w.a.Free(b); w.again(b); w.a.Free(b) },
		func(w *world) { w.a.Free(w.alloc(small)); w.a.Free(w.alloc(small)) }},
	{"double free of a large block", always(panics("double free")).andInTests(panics("in a freed block")),
		func(w *world) { b := w.alloc(large); w.a.Free(b); w.a.Free(b) },
		func(w *world) { b := w.alloc(large); w.a.Free(b) }},
	{"double free after Trim", always(panics("double free")),
		func(w *world) { b := w.alloc(small); w.heap.Free(b); w.heap.Trim(); w.heap.Free(b) },
		func(w *world) { b := w.alloc(small); w.heap.Trim(); w.heap.Free(b) }},
	{"free in one goroutine, and then in another", always(panics("double free")).andInTests(panics("in a freed block")),
		func(w *world) {
			b := w.alloc(small)
			w.a.Free(b)
			atOnce(func() { w.a.Free(b) }, func() {})
		},
		func(w *world) {
			b := w.alloc(small)
			atOnce(func() { w.a.Free(b) }, func() {})
		}},
	{"free of a block by two goroutines at once", caught{plain: isHarmless, race: racesOrPanics},
		func(w *world) {
			b := w.alloc(small)
			atOnce(func() { w.a.Free(b) }, func() { w.a.Free(b) })
			live := map[uintptr]bool{} // not detected: then the block must have one owner
			for range 1000 {
				p := addrOf(w.alloc(small))
				if live[p] {
					panic("a block has two owners")
				}
				live[p] = true
			}
		},
		func(w *world) {
			b, c := w.alloc(small), w.alloc(small)
			atOnce(func() { w.a.Free(b) }, func() { w.a.Free(c) })
		}},
	{"free of a block from its middle on", always(panics("points 8 bytes into a block of 100 bytes")).andInTests(panics("at byte 8 of a block")),
		func(w *world) { w.a.Free(w.alloc(small)[8:]) },
		func(w *world) { b := w.alloc(small); w.sink = b[8:][0]; w.a.Free(b) }},
	{"free of a large block from its middle on", always(panics("points 32768 bytes into a block of 100000 bytes")).andInTests(panics("at byte 32768 of a block")),
		func(w *world) { w.a.Free(w.alloc(large)[32768:]) },
		func(w *world) { w.a.Free(w.alloc(large)) }},
	{"free of a block that was cut short", always(panics("it has 99 bytes, the block 100")).andInTests(panics("of a block of 100 bytes")),
		func(w *world) { w.a.Free(w.alloc(small)[:99]) },
		func(w *world) { b := w.alloc(small)[:99]; w.a.Free(b[:100]) }},
	{"free of a block that was clipped", always(panics("it has 99 bytes, the block 100")).andInTests(panics("of a block of 100 bytes")),
		func(w *world) { w.a.Free(w.alloc(small)[:99:99]) },
		func(w *world) { b := w.alloc(small); _ = b[:99:99]; w.a.Free(b) }},
	{"free of a large block that was cut short", always(panics("it has 50000 bytes, the block 100000")).andInTests(panics("of a block of 100000 bytes")),
		func(w *world) { w.a.Free(w.alloc(large)[:50000]) },
		func(w *world) { b := w.alloc(large); w.a.Free(b[:50000][:large]) }},
	{"free of a block with its length cut to 0", always(panics("it has 0 bytes, the block 100")).andInTests(panics("of a block of 100 bytes")),
		func(w *world) { w.a.Free(w.alloc(small)[:0]) },
		func(w *world) { b := w.alloc(small)[:0]; w.a.Free(b[:small]) }},
	{"free of memory of the Go heap", always(panics("not from a freehold heap")).andInTests(panics("did not hand out")),
		func(w *world) { w.a.Free(make([]byte, small)) },
		func(w *world) { w.a.Free(freehold.Must(freehold.Clone(w.a, make([]byte, small)))) }},
	{"free of a global variable", always(panics("not from a freehold heap")).andInTests(panics("did not hand out")),
		func(w *world) { w.a.Free(global[:]) },
		func(w *world) { w.a.Free(freehold.Must(freehold.Clone(w.a, global[:]))) }},
	{"free of another heap's block", always(panics("belongs to another heap")).andInTests(panics("did not hand out")),
		func(w *world) {
			other := freehold.NewHeap(nil)
			defer other.Close()
			w.a.Free(freehold.Must(other.Alloc(small, 8)))
		},
		func(w *world) {
			other := freehold.NewHeap(nil)
			defer other.Close()
			other.Free(freehold.Must(other.Alloc(small, 8)))
		}},
	{"free of another heap's large block", always(panics("belongs to another heap")).andInTests(panics("did not hand out")),
		func(w *world) {
			other := freehold.NewHeap(nil)
			defer other.Close()
			w.a.Free(freehold.Must(other.Alloc(large, 8)))
		},
		func(w *world) {
			other := freehold.NewHeap(nil)
			defer other.Close()
			other.Free(freehold.Must(other.Alloc(large, 8)))
		}},
	{"free of a closed heap's block to another", always(panics("belongs to no open heap")),
		func(w *world) {
			other := freehold.NewHeap(nil)
			b := freehold.Must(other.Alloc(small, 8))
			other.Close()
			w.heap.Free(b)
		},
		func(w *world) {
			other := freehold.NewHeap(nil)
			freehold.Must(other.Alloc(small, 8))
			other.Close()
		}},
	{"free of a heap's block to Pages", always(panics("belongs to another heap")),
		func(w *world) { freehold.Pages().Free(w.alloc(small)) },
		func(w *world) {
			freehold.Pages().Free(freehold.Must(freehold.Pages().Alloc(small, 8)))
			w.a.Free(w.alloc(small))
		}},
	{"free of a block of Pages to a heap", always(panics("belongs to another heap")),
		func(w *world) {
			b := freehold.Must(freehold.Pages().Alloc(small, 8))
			defer freehold.Pages().Free(b)
			w.heap.Free(b)
		},
		func(w *world) { freehold.Pages().Free(freehold.Must(freehold.Pages().Alloc(small, 8))) }},
	{"double free to Pages", always(panics("double free")),
		func(w *world) {
			b := freehold.Must(freehold.Pages().Alloc(small, 8))
			freehold.Pages().Free(b)
			freehold.Pages().Free(b)
		},
		func(w *world) { freehold.Pages().Free(freehold.Must(freehold.Pages().Alloc(small, 8))) }},
	{"free of a block as it was before Resize", caught{plain: panics("it has 100 bytes, the block 110"), race: panics("it has 100 bytes, the block 110"), guard: harmless},
		func(w *world) {
			b := w.alloc(small)
			w.heap.Resize(b, 110)
			w.heap.Free(b)
		},
		func(w *world) {
			b := w.alloc(small)
			if r, ok := w.heap.Resize(b, 110); ok {
				b = r
			}
			w.heap.Free(b)
		}},
	{"free of a block as it was before Realloc", always(panics("double free")).andInTests(panics("in a freed block")),
		func(w *world) {
			b := w.alloc(small)
			freehold.Must(freehold.Realloc(w.a, b, 3000, 8))
			w.a.Free(b)
		},
		func(w *world) {
			b := freehold.Must(freehold.Realloc(w.a, w.alloc(small), 3000, 8))
			w.a.Free(b)
		}},
	{"Resize after Free", always(panics("Heap.Resize: 0x")).andInTests(panics("in a freed block")),
		func(w *world) { b := w.alloc(small); w.a.Free(b); w.a.Resize(b, 90) },
		func(w *world) {
			b := w.alloc(small)
			if r, ok := w.a.Resize(b, 90); ok {
				b = r
			}
			w.a.Free(b)
		}},
	{"Resize of a part of a block", always(panics("it has 50 bytes, the block 100")).andInTests(panics("of a block of 100 bytes")),
		func(w *world) { w.a.Resize(w.alloc(small)[:50], 60) },
		func(w *world) {
			b := w.alloc(small)
			if r, ok := w.a.Resize(b, 60); ok {
				b = r
			}
			w.a.Free(b)
		}},
	{"Alloc after Close", always(panics("is closed")),
		func(w *world) { w.heap.Close(); w.heap.Alloc(small, 8) },
		func(w *world) { w.heap.Free(w.alloc(small)); w.heap.Close() }},
	{"Free after Close", always(panics("is closed")),
		func(w *world) { b := w.alloc(small); w.heap.Close(); w.heap.Free(b) },
		func(w *world) { b := w.alloc(small); w.heap.Free(b); w.heap.Close(); w.heap.Close() }},
	{"Resize after Close", always(panics("is closed")),
		func(w *world) { b := w.alloc(large); w.heap.Close(); w.heap.Resize(b, large+1) },
		func(w *world) { b := w.alloc(large); w.heap.Free(b); w.heap.Close() }},
	{"Close of the default heap", always(panics("never closed")),
		func(w *world) { freehold.Default().Close() },
		func(w *world) { freehold.Default().Free(freehold.Must(freehold.Default().Alloc(small, 8))) }},
	{"a heap that is never closed", caught{leak: leaks(`freehold.Heap "dropped" dropped without Close`)},
		func(w *world) { freehold.NewHeap(&freehold.HeapOptions{Name: "dropped"}) },
		func(w *world) { freehold.NewHeap(&freehold.HeapOptions{Name: "dropped"}).Close() }},
}

var global [small]byte
