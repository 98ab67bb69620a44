package pool_test

import (
	"errors"
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

// Point is the value in the examples.
type Point struct{ X, Y int }

func Example() {
	points := pool.New[Point](freehold.Default(), nil)
	defer points.Close()

	p, err := points.Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	p.X = 3
	fmt.Println(*p)
	points.Put(p)
	// Output: {3 0}
}

// Small blocks, medium ones, and the heap for the rest, behind one interface.
func ExampleBlocks_fallback() {
	heap := freehold.Default()
	small := pool.NewBlocks(heap, 16, 16, nil)
	defer small.Close()
	medium := pool.NewBlocks(heap, 256, 16, nil)
	defer medium.Close()
	// first must not hand out memory of rest, so the chunks come from a heap
	// that is not the one behind them.
	rest := freehold.NewHeap(nil)
	defer rest.Close()

	a := freehold.NewFallback(small, freehold.NewFallback(medium, rest))
	for _, size := range []int{10, 100, 1000} {
		b, err := a.Alloc(size, 8)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(b), small.Owns(b), medium.Owns(b), rest.Owns(b))
		a.Free(b)
	}
	// Output:
	// 10 true false false
	// 100 false true false
	// 1000 false false true
}

func ExampleBlocks_GetBatch() {
	b := pool.NewBlocks(freehold.Default(), 4096, 4096, &pool.Options{MaxBlocks: 10})
	defer b.Close()

	batch := make([][]byte, 16)
	n, err := b.GetBatch(batch)
	fmt.Println(n, err)
	b.PutBatch(batch[:n])
	// Output: 10 freehold: out of memory: one more block would exceed the pool's limit of 10
}

func ExamplePool_NewCache() {
	points := pool.New[Point](freehold.Default(), nil)
	defer points.Close()

	c := points.NewCache() // for this goroutine
	defer c.Close()
	for i := range 3 {
		p, err := c.Get()
		if err != nil {
			fmt.Println(err)
			return
		}
		p.X = i
		c.Put(p)
	}
	fmt.Println(points.Live())
	// Output: 0
}

func ExamplePool_Lookup() {
	points := pool.New[Point](freehold.Default(), nil)
	defer points.Close()

	p := freehold.Must(points.Get())
	h := points.Handle(p)
	q, ok := points.Lookup(h)
	fmt.Println(*q, ok)

	points.Put(p)
	freehold.Must(points.Get()) // at the same address
	_, ok = points.Lookup(h)
	fmt.Println(ok)
	// Output:
	// {0 0} true
	// false
}

func ExamplePool_Retire() {
	points := pool.New[Point](freehold.Default(), &pool.Options{MaxBlocks: 1})
	defer points.Close()

	p := freehold.Must(points.Get())
	reader := points.Enter()
	points.Retire(p)
	_, err := points.Get()
	fmt.Println(err)

	reader.Leave()
	_, err = points.Get()
	fmt.Println(err)
	// Output:
	// freehold: out of memory: one more block would exceed the pool's limit of 1
	// <nil>
}

// A pool for the steps of one request: Reset takes back all values at once, and Trim returns their
// chunks to the parent.
func ExamplePool_Reset() {
	points := pool.New[Point](freehold.Default(), &pool.Options{Name: "points"})
	defer points.Close()

	for range 1000 {
		if _, err := points.Get(); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(points.Stats().Live, "live")
	points.Reset()
	fmt.Println(points.Stats().Live, "live,", points.Stats().Chunks > 0)
	points.Trim()
	fmt.Println(points.Stats().Reserved, "bytes of the parent")
	// Output:
	// 1000 live
	// 0 live, true
	// 0 bytes of the parent
}

// Who has a handle can put the value back, and not one that came after it.
func ExamplePool_PutHandle() {
	points := pool.New[Point](freehold.Default(), nil)
	defer points.Close()

	p, err := points.Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	h := points.Handle(p)
	points.PutHandle(h)
	_, found := points.Lookup(h)
	fmt.Println(points.Live(), found)
	// Output: 0 false
}

// Pages of 16 KiB within a limit, zeroed for their next owner.
func ExampleBlocks_Zeroed() {
	const bytes = 16 << 10
	pages := pool.NewBlocks(freehold.Default(), bytes, 8, &pool.Options{MaxBytes: 1 << 20})
	defer pages.Close()

	n := 0
	for {
		page, err := pages.Zeroed(bytes, 8)
		if errors.Is(err, freehold.ErrOutOfMemory) {
			break
		}
		page[0] = 1
		n++
	}
	fmt.Println(n > 40, pages.Stats().Reserved <= 1<<20)
	pages.Reset()
	page, err := pages.Zeroed(bytes, 8)
	fmt.Println(page[0], err)
	// Output:
	// true true
	// 0 <nil>
}
