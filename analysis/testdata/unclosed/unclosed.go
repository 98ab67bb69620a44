package unclosed

import (
	"errors"
	"io"
	"log"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/intern"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/vector"
)

type node struct{ value int }

func never(a freehold.Allocator) {
	h := freehold.NewHeap(nil) // want `the Heap of freehold.NewHeap is never closed: call or defer its Close`
	h.Alloc(8, 8)
	s := arena.NewShared(a, nil) // want `the Shared of arena.NewShared is never closed`
	s.Alloc(8, 8)
	p := pool.New[node](a, nil) // want `the Pool of pool.New is never closed`
	p.Get()
	arena.New(a, nil)                     // want `the Arena of arena.New is never closed`
	freehold.New[node](arena.New(a, nil)) // want `the Arena of arena.New is never closed`
	take(arena.New(a, nil))               // want `the Arena of arena.New is never closed`
}

func tables(a freehold.Allocator) error {
	m := hashmap.New[string, int](a, nil) // want `the Map of hashmap.New is never closed: call or defer its Close`
	m.Put("x", 1)
	s := hashmap.NewShared[int, int](a, nil) // want `the Shared of hashmap.NewShared is never closed`
	s.Put(1, 1)
	t := btree.New[int, int](a, nil) // want `the Map of btree.New is not closed on all paths`
	if err := t.Put(1, 1); err != nil {
		return err
	}
	t.Clone().Len() // want `the Map of t.Clone is never closed`
	t.Close()
	i := intern.New(a, nil) // want `the Strings of intern.New is never closed`
	i.Intern("x")
	v := vector.New[int](a, nil)
	defer v.Close()
	c := vector.NewChunked[int](a, nil) // want `the Chunked of vector.NewChunked is never closed`
	return c.Grow(10)
}

func take(a freehold.Allocator) []byte { return freehold.Must(a.Alloc(100, 8)) }

func always(a freehold.Allocator) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	s := arena.NewShared(h, nil)
	take(s)
	s.Close()
	p := pool.New[int](a, nil)
	defer func() { p.Close() }()
	c := p.NewCache()
	defer c.Close()
}

func onError(a freehold.Allocator, work func() error) error {
	scratch := arena.New(a, nil) // want `the Arena of arena.New is not closed on all paths: the return at line 69 comes without its Close`
	if err := work(); err != nil {
		return err
	}
	scratch.Close()
	return nil
}

func onNoError(a freehold.Allocator, work func() error) error {
	scratch := arena.New(a, nil)
	if err := work(); err != nil {
		scratch.Close()
		return err
	}
	scratch.Close()
	return nil
}

// A heap that another one is given.
type server struct{ heap *freehold.Heap }

func handedOn(work func(*freehold.Heap), heaps chan *freehold.Heap, t *testing.T) (*freehold.Heap, *server) {
	work(freehold.NewHeap(nil))
	heaps <- freehold.NewHeap(nil)
	h := freehold.NewHeap(nil)
	t.Cleanup(h.Close)
	g := freehold.NewHeap(nil)
	t.Cleanup(func() { g.Close() })
	keep(freehold.NewHeap(nil))
	return freehold.NewHeap(nil), &server{heap: freehold.NewHeap(nil)}
}

var kept []*freehold.Heap

func keep(h *freehold.Heap) { kept = append(kept, h) }

func halfBuilt(work func() error) (*server, error) {
	h := freehold.NewHeap(nil) // want `the Heap of freehold.NewHeap is not closed on all paths`
	if err := work(); err != nil {
		return nil, err
	}
	return &server{h}, nil
}

// Who has the arena has the heap.
func over() *arena.Arena {
	h := freehold.NewHeap(nil)
	return arena.New(h, nil)
}

func wrapped() freehold.Allocator {
	return freehold.NewLimit(freehold.NewHeap(nil), 1<<20)
}

func wrappedAndDropped() {
	l := freehold.NewLimit(freehold.NewHeap(nil), 1<<20) // want `the Heap of freehold.NewHeap is never closed`
	l.Alloc(8, 8)
}

// What is over a heap of the same function ends with it.
func endsWithHeap() {
	h := freehold.NewHeap(nil)
	defer h.Close()
	a := arena.New(h, nil)
	take(a)
	arena.NewRecycler(h, nil) // want `the Recycler of arena.NewRecycler is never closed`
}

func cache(p *pool.Pool[node]) {
	c := p.NewCache() // want `the Cache of p.NewCache is never closed`
	c.Get()
}

func guards(s *arena.Shared, early bool) {
	g := s.Enter() // want `the Guard of s.Enter is not left on all paths: the return at line 143 comes without its Leave`
	if early {
		return
	}
	g.Leave()
	s.Enter() // want `the Guard of s.Enter is never left: call or defer its Leave`
	defer s.Enter().Leave()
}

func recycled(r *arena.Recycler, fail bool) error {
	a, err := r.Get(100) // want `the Arena of r.Get is not put back on all paths`
	if err != nil {
		return err
	}
	take(a)
	if fail {
		return errors.New("failed")
	}
	r.Put(a)
	return nil
}

func recycledAlways(r *arena.Recycler, fail bool) error {
	a, err := r.Get(100)
	if err != nil {
		return err
	}
	defer r.Put(a)
	b := freehold.Must(r.Get(0))
	b.Close()
	return nil
}

func open(path string) (int, error) {
	b, err := buffer.Open(path, nil) // want `the Buffer of buffer.Open is not closed on all paths`
	if err != nil {
		return 0, err
	}
	if b.Len() == 0 {
		return 0, io.EOF
	}
	return b.Len(), b.Close()
}

func mustFail(path string) bool {
	_, err := buffer.Open(path, nil)
	return err != nil
}

func create(path string) (err error) {
	f, err := buffer.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(nil)
	return err
}

func returnsBoth(path string) (*buffer.Buffer, error) { return buffer.Open(path, nil) }

func fatal(a freehold.Allocator, t *testing.T, tb testing.TB, n int) {
	h := arena.New(a, nil)
	switch n {
	case 1:
		log.Fatal("no")
	case 2:
		t.Fatal("no")
	case 3:
		tb.Fatalf("no")
	case 4:
		panic("no")
	}
	h.Close()
}

// One condition, asked twice.
func conditional(a freehold.Allocator, own bool) {
	if own {
		a = nil
	}
	var h *freehold.Heap
	if own {
		h = freehold.NewHeap(nil)
		a = h
	}
	take(a)
	if own {
		h.Close()
	}
}

func notNil(o *freehold.HeapOptions) {
	var h *freehold.Heap
	if o != nil {
		h = freehold.NewHeap(o)
	}
	if h != nil {
		h.Close()
	}
}

func loop(a freehold.Allocator, n int) {
	for range n {
		s := arena.New(a, nil)
		if take(s)[0] == 0 {
			s.Close()
			continue
		}
		s.Close()
	}
	for range n {
		s := arena.New(a, nil) // want `the Arena of arena.New is not closed on all paths`
		if take(s)[0] == 0 {
			continue
		}
		s.Close()
	}
}

func forever(a freehold.Allocator) {
	s := arena.New(a, nil)
	for {
		take(s)
		s.Reset()
	}
}

func oneOfTwo(a freehold.Allocator, shared bool) {
	var s interface {
		freehold.Allocator
		Close()
	}
	if shared {
		s = arena.NewShared(a, nil)
	} else {
		s = arena.New(a, nil)
	}
	defer s.Close()
	take(s)
}

func cacheEndsWithPool(p *pool.Pool[node]) {
	c := p.NewCache()
	c.Get()
	p.Close()
}

// Put ends the arena, and not the Recycler.
func putIsNoClose(a freehold.Allocator) {
	r := arena.NewRecycler(a, nil) // want `the Recycler of arena.NewRecycler is never closed`
	r.Put(freehold.Must(r.Get(0)))
}

func countBytes(h *freehold.Heap, k []byte) {
	m := hashmap.New[string, int](h, nil) // want `the Map of hashmap.New is never closed`
	hashmap.PutBytes(m, k, 1)
	s := hashmap.NewShared[string, int](h, nil)
	defer s.Close()
	hashmap.PutSharedBytes(s, k, 1)
}

func scope(a freehold.Allocator) {
	s := freehold.NewScope(a) // want `the Scope of freehold.NewScope is never closed`
	take(s)
}
