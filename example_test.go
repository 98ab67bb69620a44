package freehold_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/freehold-go/freehold"
)

// A Node is off-heap and refers to other nodes off-heap.
type Node struct {
	key  freehold.String
	next freehold.Ptr[Node]
}

// A list whose nodes and strings are all off-heap.
func Example() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()

	push := func(head *Node, key string) (*Node, error) {
		n, err := freehold.New[Node](heap)
		if err != nil {
			return nil, err
		}
		s, err := freehold.CloneString(heap, key)
		if err != nil {
			freehold.Free(heap, n)
			return nil, err
		}
		n.key, n.next = freehold.StringOf(s), freehold.PtrTo(head)
		return n, nil
	}

	var list *Node
	for _, key := range []string{"one", "two", "three"} {
		var err error
		if list, err = push(list, key); err != nil {
			fmt.Println(err)
			return
		}
	}
	for list != nil {
		next := list.next.Get()
		fmt.Println(list.key.Get())
		freehold.FreeString(heap, list.key.Get())
		freehold.Free(heap, list)
		list = next
	}
	// Output:
	// three
	// two
	// one
}

func ExampleAllocator() {
	var a freehold.Allocator = freehold.Default()
	b, err := a.Alloc(100, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Free(b)
	fmt.Println(len(b), cap(b))
	// Output: 100 100
}

func ExampleOwner() {
	var o freehold.Owner = freehold.Default()
	b := freehold.Must(o.Alloc(100, 8))
	defer o.Free(b)
	fmt.Println(o.Owns(b), o.Owns(make([]byte, 100)))
	// Output: true false
}

func ExampleRealloc() {
	heap := freehold.Default()
	b := freehold.Must(heap.Alloc(5, 1))
	copy(b, "hello")
	r, err := freehold.Realloc(heap, b, 500, 1)
	if err != nil {
		heap.Free(b) // b is still valid
		return
	}
	fmt.Printf("%s %d\n", r[:5], len(r))
	heap.Free(r)
	// Output: hello 500
}

func ExampleNew() {
	type Point struct{ X, Y int }
	heap := freehold.Default()
	p, err := freehold.New[Point](heap)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer freehold.Free(heap, p)
	p.X = 3
	fmt.Println(*p)
	// Output: {3 0}
}

func ExampleFree() {
	heap := freehold.Default()
	n := freehold.Must(freehold.New[uint64](heap))
	*n = 7
	freehold.Free(heap, n)
	n = nil // guards against use after free
	freehold.Free(heap, n)
	// Output:
}

// A type with Go pointers is a mistake, and the panic names the field.
func ExampleNew_goPointer() {
	type Entry struct {
		ID   int
		Name string
	}
	defer func() { fmt.Println(recover()) }()
	freehold.New[Entry](freehold.Default())
	// Output: freehold: New[Entry]: field Name is a string, which points into the Go heap; use freehold.String
}

func ExampleMakeSlice() {
	heap := freehold.Default()
	xs, err := freehold.MakeSlice[int](heap, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer freehold.FreeSlice(heap, xs)
	for i := range xs {
		xs[i] = i * 7 % 5
	}
	slices.Sort(xs) // an ordinary slice
	fmt.Println(xs)
	// Output: [0 1 2 3 4]
}

func ExampleFreeSlice() {
	heap := freehold.Default()
	xs := freehold.Must(freehold.MakeSlice[int](heap, 5))
	freehold.FreeSlice(heap, xs[:3]) // the whole block, since the capacity is unchanged
	// Output:
}

func ExampleAppend() {
	heap := freehold.Default()
	var xs []int
	for i := range 10 {
		var err error
		if xs, err = freehold.Append(heap, xs, i*i); err != nil {
			fmt.Println(err) // xs is still valid
			break
		}
	}
	defer freehold.FreeSlice(heap, xs)
	fmt.Println(xs)
	// Output: [0 1 4 9 16 25 36 49 64 81]
}

func ExampleClone() {
	heap := freehold.Default()
	xs := freehold.Must(freehold.Clone(heap, []int{1, 2, 3}))
	defer freehold.FreeSlice(heap, xs)
	fmt.Println(xs)
	// Output: [1 2 3]
}

func ExampleGrow() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	xs := freehold.Must(freehold.MakeSlice[int](heap, 3))
	xs, err := freehold.Grow(heap, xs, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer freehold.FreeSlice(heap, xs)
	fmt.Println(len(xs), cap(xs) >= 1003)
	// Output: 3 true
}

func ExampleCloneString() {
	heap := freehold.Default()
	s := freehold.Must(freehold.CloneString(heap, "héllo"))
	fmt.Println(s, len(s))
	freehold.FreeString(heap, s)
	// Output: héllo 6
}

func ExampleFreeString() {
	heap := freehold.Default()
	s := freehold.Must(freehold.CloneString(heap, "key=value"))
	value := s[4:] // lives as long as s
	fmt.Println(value)
	freehold.FreeString(heap, s)
	// Output: value
}

func ExampleMust() {
	xs := freehold.Must(freehold.MakeSlice[byte](freehold.Default(), 3))
	fmt.Println(len(xs))
	freehold.FreeSlice(freehold.Default(), xs)
	// Output: 3
}

func ExamplePointerFree() {
	fmt.Println(freehold.PointerFree[[4]float64]())
	fmt.Println(freehold.PointerFree[[]float64]())
	// Output:
	// <nil>
	// freehold: []float64: it is a []float64, which points into the Go heap; use freehold.Slice[float64]
}

func ExamplePtr() {
	heap := freehold.Default()
	a := freehold.Must(freehold.New[Node](heap))
	b := freehold.Must(freehold.New[Node](heap))
	defer freehold.Free(heap, a)
	defer freehold.Free(heap, b)

	a.next = freehold.PtrTo(b)
	fmt.Println(a.next.Get() == b, b.next.IsNil(), b.next.Get() == nil)
	// Output: true true true
}

func ExampleSlice() {
	type Row struct {
		ID     int
		Values freehold.Slice[float64]
	}
	heap := freehold.Default()
	row := freehold.Must(freehold.New[Row](heap))
	defer freehold.Free(heap, row)

	row.Values = freehold.SliceOf(freehold.Must(freehold.MakeSlice[float64](heap, 3)))
	row.Values.Get()[1] = 2.5
	fmt.Println(row.Values.Len(), row.Values.Get())
	freehold.FreeSlice(heap, row.Values.Get())
	// Output: 3 [0 2.5 0]
}

func ExampleString() {
	heap := freehold.Default()
	n := freehold.Must(freehold.New[Node](heap))
	defer freehold.Free(heap, n)

	n.key = freehold.StringOf(freehold.Must(freehold.CloneString(heap, "key")))
	fmt.Println(n.key.Get() == "key", n.key.Len())
	freehold.FreeString(heap, n.key.Get())
	// Output: true 3
}

func ExampleLimit() {
	limit := freehold.NewLimit(freehold.Default(), 1000)
	b := freehold.Must(limit.Alloc(900, 8))
	_, err := limit.Alloc(200, 8)
	fmt.Println(err)
	fmt.Println(errors.Is(err, freehold.ErrOutOfMemory))
	fmt.Println(limit.Used(), "of", limit.MaxBytes())
	limit.Free(b)
	// Output:
	// freehold: out of memory: 200 bytes more would exceed the limit of 1000
	// true
	// 900 of 1000
}

func ExampleNewTagged() {
	counter := freehold.NewTagged(freehold.Default(), "")
	xs := freehold.Must(freehold.MakeSlice[uint64](counter, 100))
	s := freehold.Must(freehold.CloneString(counter, "hello"))
	freehold.FreeSlice(counter, xs)
	fmt.Printf("%+v\n", counter.Counts())
	freehold.FreeString(counter, s)
	// Output: {Live:1 LiveBytes:5 PeakBytes:805 Allocs:2 Frees:1}
}

func ExampleTagged() {
	db := freehold.NewTagged(freehold.Default(), "db")
	cache := freehold.NewTagged(db, "cache")
	page := freehold.Must(cache.Alloc(4096, 8))
	row := freehold.Must(db.Alloc(100, 8))
	for _, t := range freehold.AllTags() {
		if t.Tag == db.Tag() || t.Tag == cache.Tag() {
			fmt.Println(t.Tag, t.Live, t.LiveBytes)
		}
	}
	cache.Free(page)
	db.Free(row)
	// Output:
	// db 2 4196
	// db/cache 1 4096
}

func ExampleNewFallback() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	first := freehold.NewLimit(heap, 100)
	a := freehold.NewFallback(first, freehold.Default())

	b := freehold.Must(a.Alloc(80, 8))
	c := freehold.Must(a.Alloc(80, 8)) // first has 20 bytes left
	fmt.Println(heap.Owns(b), heap.Owns(c))
	a.Free(b) // to the allocator that it came from
	a.Free(c)
	fmt.Println(first.Used())
	// Output:
	// true false
	// 0
}

func ExampleScope() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	query := freehold.NewScope(heap)
	rows := freehold.Must(freehold.MakeSlice[uint64](query, 1000))
	freehold.FreeSlice(query, rows)
	freehold.Must(freehold.MakeSlice[uint64](query, 10)) // nobody frees it
	fmt.Println(query.Close(), "block was forgotten,", heap.Live(), "are live")
	// Output: 1 block was forgotten, 0 are live
}

func ExampleNewLocked() {
	a := freehold.NewLocked(freehold.Default()) // for illustration: a Heap needs no lock
	b := freehold.Must(a.Alloc(100, 8))
	a.Free(b)
	// Output:
}
