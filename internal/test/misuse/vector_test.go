package misuse

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/vector"
)

// inVector runs a program with a vector of ten numbers, which it closes afterwards.
func inVector(f func(w *world, v *vector.Vector[int])) func(w *world) {
	return func(w *world) {
		v := vector.New[int](w.a, nil)
		freehold.Must(0, v.AppendSlice(make([]int, 10)))
		f(w, v)
		v.Close()
	}
}

// inChunked runs a program with a chunked vector of ten numbers, which it closes afterwards.
func inChunked(f func(w *world, c *vector.Chunked[int])) func(w *world) {
	return func(w *world) {
		c := vector.NewChunked[int](w.a, nil)
		for range 10 {
			freehold.Must(c.Append(0))
		}
		f(w, c)
		c.Close()
	}
}

var vectorPrograms = []program{
	{"Append after Close of a Vector", always(panics("the vector is closed")),
		inVector(func(w *world, v *vector.Vector[int]) { v.Close(); v.Append(1) }),
		inVector(func(w *world, v *vector.Vector[int]) { v.Append(1); v.Close() })},
	{"Slice after Close of a Vector", always(panics("the vector is closed")),
		inVector(func(w *world, v *vector.Vector[int]) { v.Close(); v.Slice() }),
		inVector(func(w *world, v *vector.Vector[int]) { v.Slice(); v.Close() })},
	{"Close of a Vector after Close of its heap", always(panics("is closed")),
		inVector(func(w *world, v *vector.Vector[int]) { w.heap.Close() }),
		inVector(func(w *world, v *vector.Vector[int]) { v.Close(); w.heap.Close() })},
	{"At beyond the elements of a Vector", always(panics("index 10, and the length is 10")),
		inVector(func(w *world, v *vector.Vector[int]) { v.At(10) }),
		inVector(func(w *world, v *vector.Vector[int]) { v.At(9) })},
	{"a Vector of strings", always(panics("string")),
		func(w *world) { vector.New[string](w.a, nil) },
		func(w *world) { vector.New[freehold.String](w.a, nil).Close() }},
	{"write to elements of Slice after the Vector has grown", late,
		inVector(func(w *world, v *vector.Vector[int]) { s := v.Slice(); v.Grow(10000); s[0] = 1 }),
		inVector(func(w *world, v *vector.Vector[int]) { v.Grow(10000); s := v.Slice(); s[0] = 1 })},
	{"read of elements of Slice after Close of the Vector", caught{guard: guarded("use after free"), asan: sanitized},
		inVector(func(w *world, v *vector.Vector[int]) { s := v.Slice(); v.Close(); w.sink = byte(s[0]) }),
		inVector(func(w *world, v *vector.Vector[int]) { s := v.Slice(); w.sink = byte(s[0]); v.Close() })},
	{"FreeSlice of the elements of a Vector", always(panics("Heap.Free: 0x")),
		inVector(func(w *world, v *vector.Vector[int]) { v.Clip(); freehold.FreeSlice(w.heap, v.Slice()) }),
		inVector(func(w *world, v *vector.Vector[int]) { v.Clip(); v.Clear(); v.Clip() })},
	{"a Vector that is never closed", caught{leak: leaks("vector.Vector dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { v := vector.New[int](w.a, nil); v.Append(1) },
		func(w *world) { v := vector.New[int](w.a, nil); v.Append(1); v.Close() }},
	{"Append to a Vector by two goroutines", caught{race: races},
		inVector(func(w *world, v *vector.Vector[int]) { atOnce(func() { v.Append(1) }, func() { v.Append(2) }) }),
		inVector(func(w *world, v *vector.Vector[int]) { atOnce(func() { v.At(1) }, func() { v.At(2) }) })},
	{"All after Close of a Chunked", always(panics("the vector is closed")),
		inChunked(func(w *world, c *vector.Chunked[int]) {
			c.Close()
			for range c.All() {
			}
		}),
		inChunked(func(w *world, c *vector.Chunked[int]) {
			for range c.All() {
			}
			c.Close()
		})},
	{"write to an element of a Chunked after Truncate, and an Append", caught{poison: panics("was written after")},
		inChunked(func(w *world, c *vector.Chunked[int]) { e := c.At(9); c.Truncate(9); *e = 1; c.Append(2) }),
		inChunked(func(w *world, c *vector.Chunked[int]) { *c.At(9) = 1; c.Truncate(9); c.Append(2) })},
	{"write to an element of a Chunked after Close", late,
		inChunked(func(w *world, c *vector.Chunked[int]) { e := c.At(9); c.Close(); *e = 1 }),
		inChunked(func(w *world, c *vector.Chunked[int]) { *c.At(9) = 1; c.Close() })},
	{"a Chunked that is never closed", caught{leak: leaks("vector.Chunked dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { c := vector.NewChunked[int](w.a, nil); c.Append(1) },
		func(w *world) { c := vector.NewChunked[int](w.a, nil); c.Append(1); c.Close() }},
}
