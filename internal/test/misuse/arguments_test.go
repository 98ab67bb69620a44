package misuse

import (
	"math"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/pool"
)

// ordinary is the twin of an invalid request.
func ordinary(w *world) { w.a.Free(freehold.Must(w.a.Zeroed(small, 64))) }

var argumentPrograms = []program{
	{"Alloc of a negative size", always(panics("size -1")).andInTests(panics("size -1")),
		func(w *world) { w.a.Alloc(-1, 8) },
		func(w *world) { w.a.Free(freehold.Must(w.a.Alloc(0, 8))) }},
	{"Zeroed of math.MinInt", always(panics("size -")).andInTests(panics("size -")),
		func(w *world) { w.a.Zeroed(math.MinInt, 8) }, ordinary},
	{"Resize to a negative size", always(panics("Resize: size -1")).andInTests(panics("Resize: size -1")),
		func(w *world) { w.a.Resize(w.alloc(small), -1) }, ordinary},
	{"alignment of 3", always(panics("alignment 3")).andInTests(panics("alignment 3")),
		func(w *world) { w.a.Alloc(small, 3) }, ordinary},
	{"alignment of 0", always(panics("alignment 0")).andInTests(panics("alignment 0")),
		func(w *world) { w.a.Alloc(small, 0) }, ordinary},
	{"alignment of math.MinInt", always(panics("alignment -")).andInTests(panics("alignment -")),
		func(w *world) { w.a.Alloc(small, math.MinInt) }, ordinary},
	{"Alloc of all addresses", always(refuses).andInTests(refuses),
		func(w *world) { _, w.err = w.a.Alloc(math.MaxInt, 1) }, ordinary},
	{"Zeroed of half of all addresses", always(refuses).andInTests(refuses),
		func(w *world) { _, w.err = w.a.Zeroed(math.MaxInt/2, 4096) }, ordinary},
	{"alignment of half of all addresses", always(refuses).andInTests(refuses),
		func(w *world) { _, w.err = w.a.Alloc(small, math.MaxInt/2+1) }, ordinary},
	{"Realloc to all addresses", always(refuses).andInTests(refuses),
		func(w *world) { _, w.err = freehold.Realloc(w.a, w.alloc(small), math.MaxInt, 8) }, ordinary},
	{"a heap with a negative limit", always(panics("NewHeap: MaxBytes -1")),
		func(w *world) { freehold.NewHeap(&freehold.HeapOptions{MaxBytes: -1}) },
		func(w *world) { freehold.NewHeap(&freehold.HeapOptions{MaxBytes: 1 << 20}).Close() }},
	{"a Limit with a negative maximum", always(panics("NewLimit: maxBytes -1")),
		func(w *world) { freehold.NewLimit(w.a, -1) },
		func(w *world) { freehold.NewLimit(w.a, 0) }},
	{"an arena with a negative limit", always(panics("MaxBytes -1, want")),
		func(w *world) { arena.New(w.a, &arena.Options{MaxBytes: -1}) },
		func(w *world) { arena.New(w.a, &arena.Options{MaxBytes: 1}).Close() }},
	{"an arena whose chunks are larger than the largest", always(panics("MaxChunkBytes 10, want 20 or more")),
		func(w *world) { arena.New(w.a, &arena.Options{ChunkBytes: 20, MaxChunkBytes: 10}) },
		func(w *world) { arena.New(w.a, &arena.Options{ChunkBytes: 20, MaxChunkBytes: 20}).Close() }},
	{"a pool without a parent", always(panics("pool.New: parent is nil")),
		func(w *world) { pool.New[value](nil, nil) },
		func(w *world) { pool.New[value](w.a, nil).Close() }},
	{"a Pool that New did not make", always(panics("pool.Pool.Get: zero value")),
		func(w *world) { new(pool.Pool[value]).Get() },
		inPool(func(w *world, p *pool.Pool[value]) { get(p) })},
	{"a pool of blocks without bytes", always(panics("pool.NewBlocks: block size 0, want 1 to 16777216")),
		func(w *world) { pool.NewBlocks(w.a, 0, 8, nil) },
		func(w *world) { pool.NewBlocks(w.a, 1, 8, nil).Close() }},
	{"a pool of blocks at multiples of 24", always(panics("pool.NewBlocks: alignment 24, want a power of two")),
		func(w *world) { pool.NewBlocks(w.a, 24, 24, nil) },
		func(w *world) { pool.NewBlocks(w.a, 24, 8, nil).Close() }},
	{"an Advice that does not exist", always(panics("Advise: advice 99")),
		func(w *world) { freehold.Advise([]byte{}, 99) },
		func(w *world) { freehold.Advise([]byte{}, freehold.AdviceWillNeed) }},
}
