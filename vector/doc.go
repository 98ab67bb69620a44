// Package vector provides growing arrays of off-heap values.
//
//	prices := vector.New[float64](heap, nil)
//	defer prices.Close()
//
//	err := prices.Append(9.99)
//	slices.Sort(prices.Slice())
//
// A [Vector] is one block, so its elements are an ordinary slice, which package slices sorts,
// searches and compacts. Growing may move them. Where the system can, a large block of a
// [freehold.Heap] grows by moving its pages, without a copy.
//
// A [Chunked] is many blocks, whose elements never move: a pointer to one is valid until the
// element is dropped. It grows without a copy, and without the old and the new block at once.
//
// Elements hold no Go pointers, as for [freehold.MakeSlice]. Neither type is safe for
// concurrent use, except that calls that only read may run at the same time.
package vector
