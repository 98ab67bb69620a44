package page

import (
	"io"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/cache"
)

type row struct {
	id   int
	name string
}

func load(heap *freehold.Heap, r io.Reader) error {
	rows, err := freehold.MakeSlice[row](heap, 100)
	if err != nil {
		return err
	}
	defer freehold.FreeSlice(heap, rows)
	block, err := heap.Alloc(4096, 8)
	if err != nil {
		return err
	}
	n, err := r.Read(block)
	block = block[:n]
	heap.Free(block)
	return err
}

func sum(heap *freehold.Heap, n int) int {
	xs := freehold.Must(freehold.MakeSlice[int](heap, n))
	freehold.FreeSlice(heap, xs)
	return xs[0] + xs[n-1]
}

func collect(heap *freehold.Heap, in []int) ([]int, error) {
	xs, err := freehold.Clone(heap, in)
	if err != nil {
		return nil, err
	}
	xs = append(xs, len(in))
	return xs, nil
}

func title(heap *freehold.Heap, in string) (string, error) {
	scratch := arena.New(heap, nil)
	defer scratch.Close()
	return freehold.CloneString(scratch, in)
}

func parse(heap *freehold.Heap, r io.Reader) (int, error) {
	scratch := arena.New(heap, nil)
	b, err := scratch.Alloc(1000, 1)
	if err != nil {
		return 0, err
	}
	n, err := r.Read(b)
	scratch.Close()
	return n, err
}

func get(sessions *cache.Cache, key []byte) (value []byte, ok bool) {
	ok = sessions.View(key, func(e cache.Entry) { value = e.Value })
	return value, ok
}

func set(names []freehold.String, line []byte) {
	names[0] = freehold.StringOf(string(line[:5]))
}
