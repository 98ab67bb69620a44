package guides

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/pool"
)

func Example_allocatorBefore() {
	type header struct{ Key, Size uint64 }
	arenas := z.NewAllocatorPool(8)
	defer arenas.Release()

	for range 2 {
		a := arenas.Get(1<<10, "request")
		b := a.AllocateAligned(int(unsafe.Sizeof(header{}))) // zeroed; without memory the process ends
		h := (*header)(unsafe.Pointer(&b[0]))
		h.Key = 7
		name := a.Copy([]byte("alice"))
		fmt.Println(h.Key, string(name))
		arenas.Return(a) // h and name end
	}
	// Output:
	// 7 alice
	// 7 alice
}

func Example_allocatorAfter() {
	type header struct{ Key, Size uint64 }
	arenas := arena.NewRecycler(freehold.Default(), nil)
	defer arenas.Close()

	for range 2 {
		a, err := arenas.Get(1 << 10)
		if err != nil {
			panic(err)
		}
		h, err := freehold.New[header](a) // zeroed, and a *header
		if err != nil {
			panic(err)
		}
		h.Key = 7
		name, err := freehold.Clone(a, []byte("alice"))
		if err != nil {
			panic(err)
		}
		fmt.Println(h.Key, string(name))
		arenas.Put(a) // h and name end
	}
	// Output:
	// 7 alice
	// 7 alice
}

func Example_arenasAfter() {
	type tree struct {
		left, right freehold.Ptr[tree]
		name        freehold.String
	}
	a := arena.New(freehold.Default(), nil)
	defer a.Close()

	var build func(depth int) *tree
	build = func(depth int) *tree {
		t := freehold.Must(freehold.New[tree](a))
		t.name = freehold.StringOf(freehold.Must(freehold.CloneString(a, fmt.Sprint("level ", depth))))
		if depth > 0 {
			t.left, t.right = freehold.PtrTo(build(depth-1)), freehold.PtrTo(build(depth-1))
		}
		return t
	}
	root := build(10)
	scratch := freehold.Must(freehold.MakeSlice[int](a, 100))
	fmt.Println(root.name.Get(), root.left.Get().name.Get(), len(scratch))
	// Output: level 10 level 9 100
}

func Example_poolBefore() {
	buffers := sync.Pool{New: func() any { return new([64 << 10]byte) }}

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			buffer := buffers.Get().(*[64 << 10]byte) // with what the last user left
			defer buffers.Put(buffer)
			copy(buffer[:], "hello")
		})
	}
	wg.Wait()
	fmt.Println("done")
	// Output: done
}

func Example_poolAfter() {
	buffers := pool.NewBlocks(freehold.Default(), 64<<10, 64, nil)
	defer buffers.Close()

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			buffer, err := buffers.Alloc(64<<10, 64) // with what the last user left; Zeroed clears it
			if err != nil {
				panic(err)
			}
			defer buffers.Free(buffer)
			copy(buffer, "hello")
		})
	}
	wg.Wait()
	fmt.Println("done")
	// Output: done
}
