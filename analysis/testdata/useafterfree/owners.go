package useafterfree

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/pool"
)

func reset(h *freehold.Heap) {
	a := arena.New(h, nil)
	defer a.Close()
	b := freehold.Must(a.Alloc(8, 8))
	s := freehold.Must(freehold.CloneString(a, "text"))
	b[0] = s[0]
	a.Reset()
	b[0] = 1 // want `a block of a is written after a.Reset at line 16, which ended it`
	b = freehold.Must(a.Alloc(8, 8))
	b[0] = 1
}

func resetInLoop(a *arena.Arena) {
	for range 3 {
		b := freehold.Must(a.Alloc(8, 8))
		b[0] = 1
		a.Reset()
	}
}

func resetOfAnother(a, other *arena.Arena) {
	b := freehold.Must(a.Alloc(8, 8))
	other.Reset()
	b[0] = 1
}

func take(a freehold.Allocator) []byte { return freehold.Must(a.Alloc(100, 8)) }

func takenByHelper(a *arena.Arena) byte {
	b := take(a)
	a.Reset()
	return b[0] // want `a block of a is read after a.Reset`
}

func wrapped(h *freehold.Heap) {
	l := freehold.NewLimit(h, 1000)
	b := freehold.Must(l.Alloc(8, 8))
	h.Close()
	b[0] = 1 // want `a block of h is written after h.Close`
}

func rewind(a *arena.Arena) {
	old := freehold.Must(a.Alloc(8, 8))
	m := a.Mark()
	b := freehold.Must(a.Alloc(8, 8))
	a.Rewind(m)
	old[0] = 1
	b[0] = 1 // want `a block of a is written after a.Rewind`
}

func closed(h *freehold.Heap) int {
	h.Close()
	h.Close()
	h.Alloc(8, 8) // want `h.Alloc after h.Close at line 61`
	return h.Stats().Live
}

func closedTyped(h *freehold.Heap) {
	h.Close()
	freehold.New[int](h) // want `freehold.New after h.Close`
}

func closedField(x *holder) {
	x.heap.Close()
	x.heap.Trim() // want `x.heap.Trim after x.heap.Close`
}

func reopenedField(x *holder) {
	x.heap.Close()
	x.heap = freehold.NewHeap(nil)
	x.heap.Trim()
}

func closedParent(h *freehold.Heap) {
	a := arena.New(h, nil)
	h.Close()
	a.Close() // want `a.Close after h.Close`
}

func freedLate(a *arena.Arena) {
	b := freehold.Must(a.Alloc(8, 8))
	a.Reset()
	a.Free(b) // want `a block of a is freed after a.Reset`
}

func poolReset(p *pool.Pool[node]) {
	n := freehold.Must(p.Get())
	p.Reset()
	n.value = 1 // want `a block of p is written after p.Reset`
	p.Put(freehold.Must(p.Get()))
}

func recycled(r *arena.Recycler) {
	a := freehold.Must(r.Get(0))
	b := freehold.Must(a.Alloc(8, 8))
	r.Put(a)
	b[0] = 1 // want `a block of a is written after r.Put`
}

func recycledArena(r *arena.Recycler) {
	a := freehold.Must(r.Get(0))
	r.Put(a)
	take(a) // want `take after r.Put at line`
}

func recycledTwice(r *arena.Recycler) {
	a := freehold.Must(r.Get(0))
	r.Put(a)
	r.Put(a) // want `r.Put after r.Put at line`
}

func guard(s *arena.Shared) {
	g := s.Enter()
	s.Reset()
	g.Leave()
	g.Leave() // want `g.Leave after g.Leave at line`
}

func guarded(s *arena.Shared) {
	g := s.Enter()
	b := freehold.Must(s.Alloc(8, 8))
	s.Reset()
	b[0] = 1
	g.Leave()
}

func bytes(h *freehold.Heap) byte {
	buf := buffer.New(h, nil)
	buf.WriteString("text")
	b := buf.Bytes()
	buf.Close()
	return b[0] // want `a block of buf is read after buf.Close`
}

func closedBuffer(h *freehold.Heap) bool {
	buf := buffer.New(h, nil)
	buf.Close()
	return buf.Bytes() == nil && buf.Len() == 0 && !buf.InFile()
}

func deferOrder() {
	h := freehold.NewHeap(nil)
	a := arena.New(h, nil)
	defer a.Close() // want `the deferred a.Close runs after h.Close, which is deferred at line`
	defer h.Close()
}

func deferOrderOfBlock() {
	h := freehold.NewHeap(nil)
	xs := freehold.Must(freehold.MakeSlice[int](h, 1))
	defer freehold.FreeSlice(h, xs) // want `the deferred freehold.FreeSlice runs after h.Close`
	defer h.Close()
}

func rightDeferOrder() {
	h := freehold.NewHeap(nil)
	defer h.Close()
	a := arena.New(h, nil)
	defer a.Close()
	xs := freehold.Must(freehold.MakeSlice[int](a, 1))
	defer freehold.FreeSlice(a, xs)
}

func closedInHelper(a *arena.Arena) {
	a.Close()
	take(a) // want `take after a.Close at line`
}

func wantPanic(f func()) {
	defer func() { recover() }()
	f()
}

// On purpose.
func mistakes(a *arena.Arena) {
	b := take(a)
	a.Close()
	wantPanic(func() { a.Free(b) })
	wantPanic(func() {
		b := take(a)
		a.Free(b)
		a.Free(b)
	})
}

// On purpose, too: the literals of a table, of which one at a time is passed on.
func mistakesOfTable(a *arena.Arena) {
	b := take(a)
	a.Close()
	for _, f := range []func(){func() { a.Free(b) }, func() { a.Resize(b, 1) }} {
		wantPanic(f)
	}
}
