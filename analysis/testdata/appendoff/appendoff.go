package appendoff

import (
	"slices"

	"github.com/freehold-go/freehold"
)

func replaced(h *freehold.Heap) {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	xs = append(xs, 1) // want `append moves xs, which is off-heap and full, to the Go heap; use freehold.Append`
	xs[0] = 1
}

func freed(h *freehold.Heap) {
	b := freehold.Must(h.Alloc(9, 8))
	c := append(b, 1) // want `append moves b`
	h.Free(c)
	freehold.FreeSlice(h, append(freehold.Must(freehold.MakeSlice[int](h, 9)), 1))           // want `append moves freehold.Must`
	freehold.FreeSlice(h, slices.Insert(freehold.Must(freehold.MakeSlice[int](h, 9)), 4, 1)) // want `slices.Insert moves`
}

func grown(h *freehold.Heap) {
	xs := append(freehold.Must(freehold.MakeSlice[int](h, 9)), 1) // want `append moves`
	freehold.Append(h, xs, make([]int, 100)...)
}

func loop(h *freehold.Heap) []int {
	xs, err := freehold.Clone(h, []int{1, 2})
	if err != nil {
		return nil
	}
	for i := range 10 {
		xs = append(xs, i) // want `append moves xs`
	}
	return xs
}

func growth(h *freehold.Heap) {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	xs = slices.Grow(xs, 10) // want `slices.Grow moves xs`
	xs[0] = 1
}

func helper(a freehold.Allocator) []byte { return freehold.Must(a.Alloc(9, 8)) }

func helped(h *freehold.Heap) {
	b := helper(h)
	b = append(b, "text"...) // want `append moves b`
	b[0] = 1
}

// A copy that is meant, room that was made, and nothing to add.
func right(h *freehold.Heap, more []int) []int {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	defer freehold.FreeSlice(h, xs)
	both := append(xs, more...)

	room := freehold.Must(freehold.MakeSlice[int](h, 9))[:0]
	room = append(room, 1)
	room = freehold.Must(freehold.Grow(h, room, 100))
	room = append(room, both[:100]...)
	room = slices.Insert(room[:8], 4, 1)
	freehold.FreeSlice(h, room)

	b := freehold.Must(h.Alloc(9, 8))
	b = append(b[:8], 1)
	b = append(b[:0], "text"...)
	h.Free(b[:cap(b)])

	empty := freehold.Must(freehold.MakeSlice[int](h, 0))
	empty = append(empty, 1)
	return append(both, empty...)
}
