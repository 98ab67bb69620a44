//go:build goexperiment.arenas

package guides

import (
	"arena"
	"fmt"
)

func Example_arenasBefore() {
	type tree struct {
		left, right *tree
		name        string
	}
	a := arena.NewArena()
	defer a.Free()

	var build func(depth int) *tree
	build = func(depth int) *tree {
		t := arena.New[tree](a)
		t.name = fmt.Sprint("level ", depth) // on the Go heap, which is allowed
		if depth > 0 {
			t.left, t.right = build(depth-1), build(depth-1)
		}
		return t
	}
	root := build(10)
	scratch := arena.MakeSlice[int](a, 100, 100)
	fmt.Println(root.name, root.left.name, len(scratch))
	// Output: level 10 level 9 100
}
