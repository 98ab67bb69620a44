package misuse

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

// unowned hides the Owner methods of an allocator.
type unowned struct{ freehold.Allocator }

var wrapperPrograms = []program{
	{"double free through every wrapper", always(panics("double free")).andInTests(panics("double free")),
		func(w *world) {
			a := freehold.NewLocked(freehold.NewTagged(freehold.NewLimit(w.a, 1<<20), ""))
			b := freehold.Must(a.Alloc(small, 8))
			a.Free(b)
			a.Free(b)
		},
		func(w *world) {
			a := freehold.NewLocked(freehold.NewTagged(freehold.NewLimit(w.a, 1<<20), ""))
			a.Free(freehold.Must(a.Alloc(small, 8)))
		}},
	{"a block beyond the Limit", always(refuses).andInTests(refuses),
		func(w *world) { _, w.err = freehold.NewLimit(w.a, small-1).Alloc(small, 8) },
		func(w *world) {
			l := freehold.NewLimit(w.a, small)
			l.Free(freehold.Must(l.Alloc(small, 8)))
		}},
	{"a block beyond a heap's limit", always(refuses),
		func(w *world) {
			h := freehold.NewHeap(&freehold.HeapOptions{MaxBytes: 1 << 20})
			defer h.Close()
			_, w.err = h.Alloc(1<<20+1, 8)
		},
		func(w *world) {
			h := freehold.NewHeap(&freehold.HeapOptions{MaxBytes: 1 << 20})
			defer h.Close()
			h.Free(freehold.Must(h.Alloc(1<<19, 8)))
		}},
	{"free to a Limit of more bytes than it has handed out", always(panics("more than this Limit has handed out")),
		func(w *world) { freehold.NewLimit(w.a, 1000).Free(w.alloc(small)) },
		func(w *world) {
			l := freehold.NewLimit(w.a, 1000)
			l.Free(freehold.Must(l.Alloc(small, 8)))
		}},
	{"free to a Limit of a block that it did not hand out, with enough bytes live", caught{},
		func(w *world) {
			l := freehold.NewLimit(w.a, 1000)
			freehold.Must(l.Alloc(small, 8))
			l.Free(w.alloc(small))
		},
		func(w *world) {
			l := freehold.NewLimit(w.a, 1000)
			l.Free(freehold.Must(l.Alloc(small, 8)))
		}},
	{"free to a Fallback of a block of neither", always(panics("not from a freehold heap")),
		func(w *world) { freehold.NewFallback(w.heap, freehold.Pages()).Free(make([]byte, small)) },
		func(w *world) {
			f := freehold.NewFallback(w.heap, freehold.Pages())
			f.Free(freehold.Must(f.Alloc(small, 8)))
		}},
	{"Fallback from an allocator that does not know its blocks", always(panics("NewFallback: first, a *freehold.Limit, cannot tell its blocks")),
		func(w *world) { freehold.NewFallback(freehold.NewLimit(unowned{w.a}, 1000), freehold.Pages()) },
		func(w *world) { freehold.NewFallback(freehold.NewLimit(w.a, 1000), freehold.Pages()) }},
	{"Fallback to the heap that the first is over", always(panics("NewFallback: first would own the blocks of rest")),
		func(w *world) {
			f := freehold.NewFallback(freehold.NewLimit(w.heap, small), w.heap)
			b, c := freehold.Must(f.Alloc(small, 8)), freehold.Must(f.Alloc(small, 8))
			f.Free(c)
			f.Free(b)
		},
		func(w *world) {
			f := freehold.NewFallback(freehold.NewLimit(w.heap, small), freehold.Pages())
			b, c := freehold.Must(f.Alloc(small, 8)), freehold.Must(f.Alloc(small, 8))
			f.Free(c)
			f.Free(b)
		}},
	{"use of an allocator beside its Locked", caught{race: races},
		func(w *world) {
			a := arena.New(w.a, nil)
			l := freehold.NewLocked(a)
			atOnce(func() { l.Alloc(small, 8) }, func() { a.Alloc(small, 8) })
		},
		func(w *world) {
			a := arena.New(w.a, nil)
			l := freehold.NewLocked(a)
			atOnce(func() { l.Alloc(small, 8) }, func() { l.Alloc(small, 8) })
			a.Close()
		}},
}
