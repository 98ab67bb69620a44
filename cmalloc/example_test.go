package cmalloc_test

import (
	"errors"
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmalloc"
)

// Where there may be no cgo, a heap of freehold's own takes the place of C's.
func ExampleNew() {
	var a freehold.Allocator
	if c, err := cmalloc.New(); err == nil {
		a = c
	} else if errors.Is(err, errors.ErrUnsupported) {
		h := freehold.NewHeap(nil)
		defer h.Close()
		a = h
	}

	xs := freehold.Must(freehold.MakeSlice[uint64](a, 1000))
	defer freehold.FreeSlice(a, xs)
	xs[999] = 42
	fmt.Println(len(xs), xs[0], xs[999])
	// Output: 1000 0 42
}
