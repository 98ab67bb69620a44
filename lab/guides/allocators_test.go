package guides

import (
	"fmt"
	"unsafe"

	"github.com/dgraph-io/ristretto/v2/z"
	"modernc.org/memory"

	"github.com/freehold-go/freehold"
)

func Example_callocBefore() {
	type point struct{ X, Y float64 }
	const n = 1000

	b := z.Calloc(n*int(unsafe.Sizeof(point{})), "points") // zeroed; without memory the process ends
	points := unsafe.Slice((*point)(unsafe.Pointer(&b[0])), n)
	points[999] = point{1, 2}
	fmt.Println(len(points), points[0], points[999])
	z.Free(b)
	fmt.Println(z.NumAllocBytes(), "bytes live")
	// Output:
	// 1000 {0 0} {1 2}
	// 0 bytes live
}

func Example_callocAfter() {
	type point struct{ X, Y float64 }
	const n = 1000
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	tagged := freehold.NewTagged(heap, "points")

	points, err := freehold.MakeSlice[point](tagged, n) // zeroed; panics if point has a Go pointer
	if err != nil {
		panic(err)
	}
	points[999] = point{1, 2}
	fmt.Println(len(points), points[0], points[999])
	freehold.FreeSlice(tagged, points)
	fmt.Println(tagged.Counts().LiveBytes, "bytes live")
	// Output:
	// 1000 {0 0} {1 2}
	// 0 bytes live
}

func Example_modernBefore() {
	var a memory.Allocator // for one goroutine at a time
	defer a.Close()

	b, err := a.Malloc(100)
	if err != nil {
		panic(err)
	}
	copy(b, "hello")
	if b, err = a.Realloc(b, 10_000); err != nil {
		panic(err)
	}
	fmt.Println(string(b[:5]), len(b))
	p, err := a.UnsafeCalloc(8)
	if err != nil {
		panic(err)
	}
	*(*uint64)(p) = 7
	fmt.Println(*(*uint64)(p))
	_ = a.UnsafeFree(p)
	_ = a.Free(b)
	// Output:
	// hello 10000
	// 7
}

func Example_modernAfter() {
	heap := freehold.NewHeap(nil) // for any number of goroutines
	defer heap.Close()

	b, err := heap.Alloc(100, 16)
	if err != nil {
		panic(err)
	}
	copy(b, "hello")
	if b, err = freehold.Realloc(heap, b, 10_000, 16); err != nil {
		panic(err)
	}
	fmt.Println(string(b[:5]), len(b))
	p, err := freehold.New[uint64](heap) // a *uint64, zeroed; for C's style there is heap.Malloc
	if err != nil {
		panic(err)
	}
	*p = 7
	fmt.Println(*p)
	freehold.Free(heap, p)
	heap.Free(b)
	// Output:
	// hello 10000
	// 7
}

func Example_mallocAfter() {
	type node struct {
		key  uint64
		next freehold.Ptr[node]
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()

	var first *node
	for key := range uint64(3) {
		n, err := freehold.New[node](heap) // zeroed
		if err != nil {
			panic(err)
		}
		n.key, n.next = key, freehold.PtrTo(first)
		first = n
	}
	for n := first; n != nil; {
		fmt.Println(n.key)
		next := n.next.Get()
		freehold.Free(heap, n)
		n = next
	}
	// Output:
	// 2
	// 1
	// 0
}
