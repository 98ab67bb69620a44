package alloctest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// To test an allocator, pass the suite a function that makes one.
func ExampleTestAllocator() {
	_ = func(t *testing.T) { // func TestLimited(t *testing.T)
		alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
			limit := freehold.NewLimit(alloctest.New(t), 64<<20)
			t.Cleanup(func() {
				if limit.Used() != 0 {
					t.Errorf("%d bytes in use after all blocks were freed", limit.Used())
				}
			})
			return limit
		}, &alloctest.Options{Detects: alloctest.AllMistakes})
	}
}

// A fuzz target for an allocator is one call.
func ExampleRunProgram() {
	_ = func(f *testing.F) { // func FuzzHeap(f *testing.F)
		f.Add([]byte{0x30, 0, 32, 0, 0x0F, 0, 0, 0}) // Alloc, Free
		f.Fuzz(func(t *testing.T, prog []byte) {
			heap := freehold.NewHeap(nil)
			defer heap.Close()
			alloctest.RunProgram(t, heap, prog)
		})
	}
}

// To test code that allocates, use an allocator that fails the test on leaks.
func ExampleNew() {
	_ = func(t *testing.T) { // func TestTable(t *testing.T)
		a := alloctest.New(t)
		xs := freehold.Must(freehold.MakeSlice[uint64](a, 100))
		freehold.FreeSlice(a, xs) // without this, the test fails and shows the line above
	}
}

// pair allocates two blocks. On an error it keeps none.
func pair(a freehold.Allocator) (x, y []byte, err error) {
	if x, err = a.Alloc(8, 8); err != nil {
		return nil, nil, err
	}
	if y, err = a.Alloc(8, 8); err != nil {
		a.Free(x)
		return nil, nil, err
	}
	return x, y, nil
}

// A loop over n takes every error path. An allocator from New reports the blocks that
// an error path does not free.
func ExampleFailAfter() {
	for n := 0; ; n++ {
		a := alloctest.FailAfter(freehold.Default(), n)
		x, y, err := pair(a)
		fmt.Println(n, errors.Is(err, freehold.ErrOutOfMemory))
		if err == nil {
			a.Free(x)
			a.Free(y)
			break
		}
	}
	// Output:
	// 0 true
	// 1 true
	// 2 false
}

func ExampleFailOnce() {
	a := alloctest.FailOnce(freehold.Default(), 1)
	for range 3 {
		b, err := a.Alloc(8, 8)
		fmt.Println(err == nil)
		a.Free(b)
	}
	// Output:
	// true
	// false
	// true
}
