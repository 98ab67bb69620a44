package freepart

import (
	"io"
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

const size = 100

type node struct{ left, right int64 }

func take(a freehold.Allocator, n int) []byte { return freehold.Must(a.Alloc(n, 8)) }

func blocks(h *freehold.Heap, n int) {
	h.Free(freehold.Must(h.Alloc(size, 8))[8:]) // want `h.Free of .*, which is not the beginning of its block`
	h.Free(take(h, size)[:99])                  // want `h.Free of .*, which is shorter than its block`
	h.Free(take(h, size)[:99:99])               // want `cut off from the rest of its block`
	h.Free(take(h, size)[:0])                   // want `shorter than its block`
	b := freehold.Must(h.Alloc(n, 8))
	h.Free(b[n/2:])                  // want `h.Free of b\[n / 2:\], which is not the beginning of its block`
	h.Resize(take(h, size)[:50], 60) // want `h.Resize of .*, which is shorter than its block`
}

func wholeBlocks(h *freehold.Heap, n int, x struct{ b []byte }, outside []byte) {
	b := freehold.Must(h.Alloc(size, 8))[:99]
	h.Free(b[:size])
	b = freehold.Must(h.Alloc(n, 8))
	h.Free(b[:0][:n])
	b = freehold.Must(h.Alloc(n*8, 8))
	h.Free(b[:n][:n*8])
	b = freehold.Must(h.Alloc(len(outside), 8))
	h.Free(b[:len(outside)])
	b = freehold.Must(h.Alloc(n, 8))[:0]
	b = append(b, 1)
	h.Free(b[:cap(b)])
	h.Free(x.b[:8])
	h.Free(outside[8:])
	h.Free(nil)
	h.Free([]byte{})
	h.Free(make([]byte, 0))
}

func read(h *freehold.Heap, r io.Reader) error {
	b, err := h.Alloc(4096, 8)
	if err != nil {
		return err
	}
	n, err := r.Read(b)
	b = b[:n]
	h.Free(b) // want `h.Free of b, which is shorter than its block`
	return err
}

func consume(h *freehold.Heap, w io.Writer) {
	b := take(h, size)
	for len(b) > 0 {
		n, _ := w.Write(b)
		b = b[n:]
	}
	h.Free(b) // want `h.Free of b, which is not the beginning of its block after the loop`
}

func consumeCopy(h *freehold.Heap, w io.Writer) {
	b := take(h, size)
	for rest := b; len(rest) > 0; {
		n, _ := w.Write(rest)
		rest = rest[n:]
	}
	h.Free(b)
}

func slices(h *freehold.Heap) {
	xs := freehold.Must(freehold.MakeSlice[int64](h, 9))
	freehold.FreeSlice(h, xs[1:])   // want `freehold.FreeSlice of xs\[1:\], which is not the beginning of its block`
	freehold.FreeSlice(h, xs[:1:1]) // want `cut off from the rest of its block`
	freehold.FreeSlice(h, xs[:1])
	freehold.FreeSlice(h, xs[:0:9])
	freehold.FreeSlice(h, []int64{1}) // want `which is memory of the Go heap`
}

func texts(h *freehold.Heap) {
	s := freehold.Must(freehold.CloneString(h, "constant"))
	freehold.FreeString(h, s[:5])             // want `shorter than its block`
	freehold.FreeString(h, s[1:])             // want `not the beginning of its block`
	freehold.FreeString(h, "constant")        // want `which is a constant`
	freehold.FreeString(h, s+"!")             // want `which is a string of the Go heap`
	freehold.FreeString(h, string([]byte{1})) // want `which is a copy in the Go heap`
	freehold.FreeString(h, strings.TrimSpace(s))
	freehold.FreeString(h, s[:len(s)])
	freehold.FreeString(h, s)
	freehold.FreeString(h, "")
}

var global [size]byte

func values(h *freehold.Heap) {
	n := freehold.Must(freehold.New[node](h))
	freehold.Free(h, &n.right)                                                        // want `freehold.Free of .*, which is a field of its block`
	freehold.Free(h, &n.left)                                                         // want `a value of 8 bytes in a block of 16`
	freehold.Free(h, &freehold.Must(freehold.New[[2]int64](h))[1])                    // want `an element of its block`
	freehold.Free(h, (*int32)(unsafe.Pointer(freehold.Must(freehold.New[int64](h))))) // want `a value of 4 bytes in a block of 8`
	var v node
	freehold.Free(h, &v)                          // want `which is a Go variable`
	freehold.Free(h, new(node))                   // want `which is a Go variable`
	h.Free(global[:])                             // want `which is a Go variable`
	h.Free(make([]byte, size))                    // want `which is memory of the Go heap`
	h.FreePointer(unsafe.Add(h.Malloc(size), 16)) // want `inside its block`

	freehold.Free(h, n)
	p := (*int32)(unsafe.Pointer(freehold.Must(freehold.New[int64](h))))
	freehold.Free(h, (*int64)(unsafe.Pointer(p)))
	freehold.Free(h, (*node)(nil))
}

func pools(p *pool.Pool[node], b *pool.Blocks) {
	p.Put((*node)(unsafe.Add(unsafe.Pointer(freehold.Must(p.Get())), 8))) // want `inside its block`
	p.Put(new(node))                                                      // want `which is a Go variable`
	b.Free(take(b, 64)[8:])                                               // want `not the beginning of its block`
	b.Free(take(b, 64)[:8:8])
	p.Put(freehold.Must(p.Get()))

	b.Retire(take(b, 64)[8:]) // want `not the beginning of its block`
	b.Retire(take(b, 64)[:8:8])
	p.Retire(new(node)) // want `which is a Go variable`
	p.Retire(freehold.Must(p.Get()))
}

func caches(c *pool.Cache[node]) {
	c.Put(new(node)) // want `which is a Go variable`
}

// An allocator that hands out Go memory.
type goHeap struct{}

func (goHeap) Alloc(size, align int) ([]byte, error)    { return make([]byte, size), nil }
func (goHeap) Zeroed(size, align int) ([]byte, error)   { return make([]byte, size), nil }
func (goHeap) Resize(b []byte, size int) ([]byte, bool) { return nil, false }
func (goHeap) Free(b []byte)                            {}

func own(a goHeap) { a.Free(make([]byte, size)) }

func generic[T any](a freehold.Allocator) {
	p := freehold.Must(freehold.New[T](a))
	freehold.Free(a, p)
}
