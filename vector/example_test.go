package vector_test

import (
	"fmt"
	"slices"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/vector"
)

func ExampleVector() {
	v := vector.New[int](freehold.Default(), nil)
	defer v.Close()

	for _, n := range []int{5, 2, 8} {
		if err := v.Append(n); err != nil {
			fmt.Println(err)
			return
		}
	}
	slices.Sort(v.Slice())
	last, _ := v.Pop()
	fmt.Println(v.Slice(), last)
	// Output: [2 5] 8
}

func ExampleVector_Insert() {
	v := vector.New[int](freehold.Default(), nil)
	defer v.Close()

	v.AppendSlice([]int{1, 2, 6})
	v.Insert(2, []int{3, 4, 5})
	v.Delete(0, 1)
	fmt.Println(v.Slice())
	// Output: [2 3 4 5 6]
}

// Package slices works on the elements in place; Truncate drops what it leaves behind.
func ExampleVector_Slice() {
	v := vector.New[int](freehold.Default(), nil)
	defer v.Close()

	if err := v.AppendSlice([]int{5, 2, 8, 5, 2}); err != nil {
		fmt.Println(err)
		return
	}
	slices.Sort(v.Slice())
	v.Truncate(len(slices.Compact(v.Slice())))
	at, ok := slices.BinarySearch(v.Slice(), 5)
	fmt.Println(v.Slice(), at, ok)
	// Output: [2 5 8] 1 true
}

// The nodes of a tree refer to each other while their number grows.
func ExampleChunked() {
	type node struct {
		left, right freehold.Ptr[node]
		key         int
	}
	nodes := vector.NewChunked[node](freehold.Default(), nil)
	defer nodes.Close()

	root, _ := nodes.Append(node{key: 50})
	for _, key := range []int{20, 70, 10} {
		n, err := nodes.Append(node{key: key})
		if err != nil {
			fmt.Println(err)
			return
		}
		at := &root.left
		if key > root.key {
			at = &root.right
		}
		for !at.IsNil() {
			at = &at.Get().left
		}
		*at = freehold.PtrTo(n)
	}
	fmt.Println(root.left.Get().key, root.left.Get().left.Get().key, root.right.Get().key)
	fmt.Println(nodes.Len(), root == nodes.At(0))
	// Output:
	// 20 10 70
	// 4 true
}

// Memory for what will come is taken at once, and what was too much is given back.
func ExampleVector_Grow() {
	v := vector.New[uint32](freehold.Default(), &vector.Options{Name: "ids"})
	defer v.Close()

	if err := v.Grow(1_000_000); err != nil {
		fmt.Println(err)
		return
	}
	for id := range uint32(1000) {
		if err := v.Append(id); err != nil { // moves nothing, and has no error
			fmt.Println(err)
			return
		}
	}
	fmt.Println(v.Cap() >= 1_000_000)
	v.Clip()
	fmt.Println(v.Stats().Len, v.Stats().Reserved < 8<<10)
	// Output:
	// true
	// 1000 true
}

// All yields copies; Set changes an element.
func ExampleVector_All() {
	v := vector.New[int](freehold.Default(), nil)
	defer v.Close()

	if err := v.AppendSlice([]int{1, 2, 3}); err != nil {
		fmt.Println(err)
		return
	}
	for i, n := range v.All() {
		v.Set(i, n*n)
	}
	fmt.Println(v.Slice())
	v.Clear() // keeps the memory
	fmt.Println(v.Len(), v.Cap() >= 3)
	// Output:
	// [1 4 9]
	// 0 true
}

// All of a Chunked yields pointers, so the elements can be changed in place.
func ExampleChunked_All() {
	type particle struct{ x, v float64 }
	ps := vector.NewChunked[particle](freehold.Default(), nil)
	defer ps.Close()

	for i := range 3 {
		if _, err := ps.Append(particle{v: float64(i)}); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, p := range ps.All() {
		p.x += 2 * p.v
	}
	fmt.Println(*ps.At(2))
	// Output: {4 2}
}
