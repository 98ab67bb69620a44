package arena_test

import (
	"errors"
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

func Example() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	scratch := arena.New(heap, nil)
	defer scratch.Close()

	type Node struct {
		Name freehold.String
		Next freehold.Ptr[Node]
	}
	var first *Node
	for _, name := range []string{"three", "two", "one"} {
		n := freehold.Must(freehold.New[Node](scratch))
		n.Name = freehold.StringOf(freehold.Must(freehold.CloneString(scratch, name)))
		n.Next = freehold.PtrTo(first)
		first = n
	}
	for n := first; n != nil; n = n.Next.Get() {
		fmt.Println(n.Name.Get())
	}
	scratch.Reset() // all nodes and names end; the memory stays
	fmt.Println(scratch.Stats().LiveBytes, "bytes used of", scratch.Stats().Reserved)
	// Output:
	// one
	// two
	// three
	// 0 bytes used of 4096
}

// recorder is a parent that prints its calls.
type recorder struct{ freehold.Allocator }

func (r recorder) Alloc(size, align int) ([]byte, error) {
	fmt.Println("the parent gives", size, "bytes")
	return r.Allocator.Alloc(size, align)
}

func (r recorder) Free(b []byte) {
	fmt.Println("the parent gets", len(b), "bytes back")
	r.Allocator.Free(b)
}

// Ten small blocks take one block of the parent.
func ExampleArena() {
	a := arena.New(recorder{freehold.Default()}, nil)
	for range 10 {
		if _, err := a.Alloc(8, 8); err != nil {
			panic(err)
		}
	}
	fmt.Println(a.Live(), "blocks take", a.Stats().LiveBytes, "bytes")
	a.Close()
	// Output:
	// the parent gives 4096 bytes
	// 10 blocks take 80 bytes
	// the parent gets 4096 bytes back
}

// Allocators compose from the outside in: an arena over a limit over a heap.
func ExampleNew() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	limit := freehold.NewLimit(heap, 64<<10)
	a := arena.New(limit, nil)
	defer a.Close()

	blocks := 0
	for {
		if _, err := a.Alloc(1000, 8); err != nil {
			fmt.Println(errors.Is(err, freehold.ErrOutOfMemory))
			break
		}
		blocks++
	}
	fmt.Println(blocks, "blocks of 1000 bytes")
	a.Reset()
	a.Trim()
	fmt.Println(limit.Used(), "bytes of the limit in use")
	// Output:
	// true
	// 64 blocks of 1000 bytes
	// 0 bytes of the limit in use
}

// An existing buffer can be the memory, and the bound, of an arena.
func ExampleNewFixed() {
	buffer := make([]byte, 64)
	a := arena.NewFixed(buffer)
	defer a.Close() // buffer is the caller's again

	for {
		_, err := freehold.New[uint64](a)
		if errors.Is(err, freehold.ErrOutOfMemory) {
			break
		}
	}
	fmt.Println(a.Live(), "numbers,", a.Remaining(), "bytes left")
	a.Reset()
	fmt.Println(a.Live(), "numbers,", a.Remaining(), "bytes left")
	// Output:
	// 8 numbers, 0 bytes left
	// 0 numbers, 64 bytes left
}

// Rewind ends a function's temporary blocks.
func ExampleArena_Rewind() {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	digits := func(n int) int {
		defer a.Rewind(a.Mark())
		scratch := freehold.Must(a.Alloc(20, 1))
		return len(fmt.Appendf(scratch[:0], "%d", n))
	}
	fmt.Println(digits(12345), digits(1<<30))
	fmt.Println(a.Stats().LiveBytes, "bytes used")
	// Output:
	// 5 10
	// 0 bytes used
}

func ExampleRecycler() {
	arenas := arena.NewRecycler(freehold.Default(), nil)
	defer arenas.Close()
	handle := func(request string) string {
		a := freehold.Must(arenas.Get(1 << 10))
		defer arenas.Put(a)
		return request + ": " + freehold.Must(freehold.CloneString(a, "done"))
	}
	fmt.Println(handle("first"))
	fmt.Println(handle("second"))
	fmt.Println(arenas.Stats().Idle, "idle arena")
	// Output:
	// first: done
	// second: done
	// 1 idle arena
}

// What a parser allocated for a rule that did not match is dropped at once.
func ExampleArena_Mark() {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	try := func(text string) (n *int64, ok bool) {
		before := a.Mark()
		n = freehold.Must(freehold.New[int64](a))
		if _, err := fmt.Sscan(text, n); err != nil {
			a.Rewind(before) // n is not to be used any more
			return nil, false
		}
		return n, true
	}

	_, ok := try("word")
	fmt.Println(ok, a.Stats().LiveBytes)
	n, ok := try("42")
	fmt.Println(ok, a.Stats().LiveBytes, *n)
	// Output:
	// false 0
	// true 8 42
}

// A Recycler with bounds on the memory that idle arenas keep.
func ExampleNewRecycler() {
	heap := freehold.NewHeap(&freehold.HeapOptions{MaxBytes: 64 << 20})
	defer heap.Close()
	arenas := arena.NewRecycler(heap, &arena.RecyclerOptions{
		Arena:         &arena.Options{MaxBytes: 8 << 20}, // of a request
		MaxArenaBytes: 64 << 10,                          // of an idle one
	})
	defer arenas.Close()

	a := freehold.Must(arenas.Get(0))
	_, err := a.Alloc(9<<20, 8)
	fmt.Println(errors.Is(err, freehold.ErrOutOfMemory))
	freehold.Must(a.Alloc(1<<20, 8))
	arenas.Put(a)
	fmt.Println(arenas.Stats().Reserved <= 64<<10)
	// Output:
	// true
	// true
}

// An arena for one request after another keeps the memory of a usual request, and gives the rest of
// the largest one back.
func ExampleArena_TrimTo() {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()

	for _, size := range []int{1 << 10, 8 << 20, 1 << 10} { // bytes of the requests
		if _, err := a.Alloc(size, 8); err != nil {
			fmt.Println(err)
			return
		}
		a.Reset()
		a.TrimTo(1 << 20)
	}
	fmt.Println(a.Stats().Reserved <= 1<<20)
	// Output: true
}

// After Reserve of n bytes, blocks of n bytes in all cannot fail.
func ExampleArena_Reserve() {
	a := arena.New(freehold.NewLimit(freehold.Default(), 1<<20), nil)
	defer a.Close()

	if err := a.Reserve(2 << 20); err != nil {
		fmt.Println("too much:", errors.Is(err, freehold.ErrOutOfMemory))
	}
	if err := a.Reserve(100 * 64); err != nil {
		fmt.Println(err)
		return
	}
	for range 100 {
		freehold.Must(a.Alloc(64, 8))
	}
	// Output: too much: true
}
