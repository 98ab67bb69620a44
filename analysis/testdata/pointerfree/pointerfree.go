package pointerfree

import (
	"sync"
	"sync/atomic"
	"time"

	"freehold.test/pointerfree/list"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/vector"
)

type (
	named struct {
		id  int
		key string
	}
	kept    struct{ key freehold.String }
	linked  struct{ next *linked }
	chained struct{ next freehold.Ptr[chained] }
	alias   = named
	locked  struct {
		mu sync.Mutex
		n  atomic.Int64
	}
	shared struct{ p atomic.Pointer[int] }
)

func all(h *freehold.Heap) {
	freehold.New[named](h)                 // want `freehold: New\[named\]: field key is a string, which points into the Go heap; use freehold.String`
	freehold.New[alias](h)                 // want `freehold: New\[named\]: field key`
	freehold.New[linked](h)                // want `New\[linked\]: field next is a \*linked, which points into the Go heap; use freehold.Ptr\[linked\]`
	freehold.MakeSlice[*int](h, 5)         // want `MakeSlice\[\*int\]: it is a \*int`
	freehold.Append(h, nil, "x")           // want `Append\[string\]: it is a string`
	freehold.Clone(h, []any{1})            // want `Clone\[interface {}\]: it is an interface`
	pool.New[map[int]int](h, nil)          // want `pool.New\[map\[int\]int\]: it is a map, which points into the Go heap; keep it in a Go slice and store its index`
	freehold.New[shared](h)                // want `field p.v is an unsafe.Pointer`
	freehold.New[struct{ t time.Time }](h) // want `field t is a time.Time`
	make := freehold.New[string]           // want `New\[string\]: it is a string`
	make(h)

	freehold.New[kept](h)
	freehold.New[chained](h)
	freehold.New[locked](h)
	freehold.New[[0]string](h)
	freehold.MakeSlice[freehold.Slice[string]](h, 5)
	freehold.Grow(h, []uint64{}, 5)
	pool.New[[8]float64](h, nil)
	freehold.CloneString(h, "x")
}

func tables(h *freehold.Heap) {
	hashmap.New[*int, int](h, nil)               // want `freehold: hashmap.New\[K=\*int\]: it is a \*int, which points into the Go heap; use freehold.Ptr\[int\]`
	hashmap.New[string, named](h, nil)           // want `freehold: hashmap.New\[V=named\]: field key is a string`
	hashmap.New[struct{ s string }, int](h, nil) // want `hashmap.New\[K=struct`
	hashmap.New[int, []string](h, nil)           // want `hashmap.New\[V=\[\]string\]: it is a \[\]string`
	hashmap.NewShared[int, *int](h, nil)         // want `hashmap.NewShared\[V=\*int\]`
	btree.New[string, string](h, nil)            // want `btree.New\[V=string\]: it is a string`
	btree.NewFunc[string, int](h, nil, nil)      // want `btree.NewFunc\[K=string\]: it is a string`
	vector.New[named](h, nil)                    // want `vector.New\[named\]: field key`
	vector.NewChunked[*int](h, nil)              // want `vector.NewChunked\[\*int\]`

	hashmap.New[string, string](h, nil)
	hashmap.New[text, []byte](h, nil)
	hashmap.NewShared[string, []byte](h, nil)
	hashmap.New[int, kept](h, nil)
	btree.New[text, kept](h, nil)
	btree.NewFunc[kept, int](h, nil, nil)
	vector.New[kept](h, nil)
}

type text string

func containers(h *freehold.Heap) {
	list.New[string](h).Push("x") // want `Push stores its T, here string, off-heap: it is a string, which points into the Go heap; use freehold.String`
	list.New[int](h).Push(1)
	list.Refer(h, new(string))
	list.Pair(h, 1, new(string))
	list.Pair(h, "x", new(int)) // want `Pair stores its K, here string, off-heap`
}
