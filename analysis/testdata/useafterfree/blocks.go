package useafterfree

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

type node struct {
	value int
	next  freehold.Ptr[node]
	inner struct{ a, b int }
}

func readSlice(h *freehold.Heap) int {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	freehold.FreeSlice(h, xs)
	return xs[0] // want `xs is read after freehold.FreeSlice at line 20`
}

func rightOrder(h *freehold.Heap) int {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	x := xs[0]
	freehold.FreeSlice(h, xs)
	return x
}

func writeBlock(a freehold.Allocator, b []byte) {
	a.Free(b)
	b[0] = 1 // want `b is written after a.Free at line 32`
}

func field(h *freehold.Heap) {
	n := freehold.Must(freehold.New[node](h))
	p := &n.inner.b
	freehold.Free(h, n)
	*p = 1 // want `n is written after freehold.Free`
}

func part(h *freehold.Heap) {
	b := freehold.Must(h.Alloc(100, 8))
	tail := b[50:]
	h.Free(b)
	copy(tail, "x") // want `b is used by copy after h.Free`
}

func text(h *freehold.Heap, m map[string]int) bool {
	s := freehold.Must(freehold.CloneString(h, "text"))
	freehold.FreeString(h, s)
	return s == "text" // want `s is read after freehold.FreeString`
}

func copied(h *freehold.Heap) string {
	b := freehold.Must(h.Alloc(4, 1))
	s := string(b)
	h.Free(b)
	return s
}

func converted(h *freehold.Heap) string {
	b := freehold.Must(h.Alloc(4, 1))
	h.Free(b)
	return string(b) // want `b is read after h.Free`
}

func handle(h *freehold.Heap) int64 {
	p := freehold.Must(freehold.New[int64](h))
	r := freehold.PtrTo(p)
	freehold.Free(h, p)
	return *r.Get() // want `p is read after freehold.Free`
}

func pointers(h *freehold.Heap) {
	p := h.Malloc(100)
	h.FreePointer(p)
	*(*byte)(unsafe.Add(p, 8)) = 1 // want `p is written after h.FreePointer`
}

func returned(h *freehold.Heap, b []byte) []byte {
	h.Free(b)
	return b // want `b is returned after h.Free`
}

var last []byte

func stored(h *freehold.Heap, m map[int][]byte, b, c []byte) {
	h.Free(b)
	m[1] = b // want `b is stored after h.Free`
	h.Free(c)
	last = c // want `c is stored after h.Free`
}

func passed(h *freehold.Heap, b, c []byte) {
	h.Free(b)
	fmt.Println(string(c), len(b), cap(b), addr(b), b == nil)
	first(b) // want `b is passed to first after h.Free`
}

func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func first(b []byte) byte { return b[0] }

// Neither the length nor the address of a block is its memory.
func header(h *freehold.Heap, p *int) int {
	b := freehold.Must(h.Alloc(4, 1))
	h.Free(b)
	runtime.KeepAlive(b)
	freehold.Free(h, p)
	fmt.Printf("%p\n", p)
	return len(b) + int(addr(b)) + len(b[1:])
}

func branches(h *freehold.Heap, b []byte, now bool) {
	if now {
		h.Free(b)
	}
	b[0] = 1
	if !now {
		h.Free(b)
	}
}

func early(h *freehold.Heap, b []byte, now bool) {
	if now {
		h.Free(b)
		return
	}
	b[0] = 1
	h.Free(b)
}

func loop(h *freehold.Heap) {
	for range 3 {
		b := freehold.Must(h.Alloc(4, 1))
		b[0] = 1
		h.Free(b)
	}
}

func loopOutside(h *freehold.Heap) {
	var b []byte
	for range 3 {
		if b != nil {
			b[0] = 1
			h.Free(b)
		}
		b = freehold.Must(h.Alloc(4, 1))
	}
	h.Free(b)
}

func list(h *freehold.Heap, head *node) {
	for n := head; n != nil; n = n.next.Get() { // want `n is read after freehold.Free`
		freehold.Free(h, n)
	}
}

func rightList(h *freehold.Heap, head *node) {
	for n := head; n != nil; {
		next := n.next.Get()
		freehold.Free(h, n)
		n = next
	}
}

type holder struct {
	heap *freehold.Heap
	data []byte
	keys []int
}

func fields(x *holder) {
	x.heap.Free(x.data)
	x.data[0] = 1 // want `x.data is written after x.heap.Free`
}

func rightFields(x *holder) {
	x.heap.Free(x.data)
	x.data = freehold.Must(x.heap.Alloc(8, 8))
	x.data[0] = 1
	x.heap.Free(x.data)
	x.renew()
	x.data[0] = 1
}

func (x *holder) renew() { x.data = freehold.Must(x.heap.Alloc(8, 8)) }

func twice(h *freehold.Heap, b []byte) {
	h.Free(b)
	h.Free(b) // want `b is freed twice: before by h.Free at line`
}

func twiceTyped(h *freehold.Heap) {
	p := freehold.Must(freehold.New[node](h))
	freehold.Free(h, p)
	freehold.Free(h, p) // want `p is freed twice`
}

func twiceDeferred(h *freehold.Heap) {
	b := freehold.Must(h.Alloc(4, 1))
	defer h.Free(b)
	b[0] = 1
	h.Free(b) // want `b is freed here, and freed again by the deferred h.Free at line`
}

func twiceByClosure(h *freehold.Heap) {
	b := freehold.Must(h.Alloc(4, 1))
	defer func() { h.Free(b) }()
	h.Free(b) // want `b is freed here, and freed again by the deferred h.Free`
}

func onceByClosure(h *freehold.Heap) {
	b := freehold.Must(h.Alloc(4, 1))
	defer func() {
		if b != nil {
			h.Free(b)
		}
	}()
	if len(b) > 3 {
		h.Free(b)
		b = nil
	}
}

func release(h *freehold.Heap, b []byte) { h.Free(b) }

func releaseSome(h *freehold.Heap, b []byte) {
	if len(b) > 100 {
		h.Free(b)
	}
}

func helpers(h *freehold.Heap, b, c []byte) {
	releaseSome(h, c)
	c[0] = 1
	release(h, b)
	b[0] = 1 // want `b is written after release at line`
}

func captured(h *freehold.Heap, do func(func())) {
	b := freehold.Must(h.Alloc(4, 1))
	do(func() { b[0] = 1 })
	h.Free(b)
	do(func() { b[0] = 1 }) // want `b is captured by a function after h.Free`
}

func pooled(p *pool.Pool[node]) {
	n := freehold.Must(p.Get())
	p.Put(n)
	n.value = 1 // want `n is written after p.Put`
}

func putTwice(p *pool.Pool[node], c *pool.Cache[node]) {
	n := freehold.Must(p.Get())
	p.Put(n)
	p.Put(n) // want `n is freed twice: before by p.Put`
	m := freehold.Must(c.Get())
	c.Put(m)
	c.Put(m) // want `m is freed twice: before by c.Put`
	q := freehold.Must(p.Get())
	p.Retire(q)
	p.Retire(q) // want `q is freed twice: before by p.Retire`
}

func retired(p *pool.Pool[node]) {
	g := p.Enter()
	defer g.Leave()
	n := freehold.Must(p.Get())
	p.Retire(n)
	n.value = 1 // a reader may, under its guard
	p.Put(n)    // want `n is freed twice: before by p.Retire`
}

func lookedUp(p *pool.Pool[node], b *pool.Blocks) bool {
	n := freehold.Must(p.Get())
	h := p.Handle(n)
	p.Put(n)
	_, ok := p.Lookup(h)
	r := freehold.Must(b.Alloc(8, 8))
	b.Free(r)
	return ok && b.Owns(r)
}

func handleOfFreed(p *pool.Pool[node]) {
	n := freehold.Must(p.Get())
	p.Put(n)
	p.Handle(n) // want `n is passed to Handle after p.Put`
}

// An allocator of the caller's own.
type counted struct{ freehold.Allocator }

func (c counted) Free(b []byte) { c.Allocator.Free(b) }

func own(c counted, b []byte) {
	c.Free(b)
	b[0] = 1 // want `b is written after c.Free`
}

func inClosure(h *freehold.Heap) func() {
	b := freehold.Must(h.Alloc(4, 1))
	return func() {
		h.Free(b)
		b[0] = 1 // want `b is written after h.Free`
	}
}

func letters(h *freehold.Heap, s string) (n rune) {
	freehold.FreeString(h, s)
	for _, c := range s { // want `s is read after freehold.FreeString`
		n += c
	}
	return n
}

func mapKey(h *freehold.Heap, s string, m map[string]int) int {
	freehold.FreeString(h, s)
	return m[s] // want `s is read after freehold.FreeString`
}
