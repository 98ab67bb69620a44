// Handles: generational references, which detect that their value is gone.
//
// Each block of a typed pool has a generation, which Put increments. A handle is an address and a
// generation. No pair of them is used twice in a process: the generations of a new chunk start
// above all generations of chunks given back before.

package pool

import "unsafe"

// Handle refers to a value of a [Pool]. It may be stored off-heap and keeps
// nothing alive. The zero Handle refers to nothing. Two handles are equal if they
// refer to the same value. The generation has 64 bits and never wraps.
type Handle[T any] struct {
	_    [0]*T // so that Handle[A] does not convert to Handle[B]
	addr uintptr
	gen  uint64
}

// Handle returns a reference to t, which is valid until t's Put or Retire. For a nil t it is the
// zero Handle. It panics if t is not a live value of p.
func (p *Pool[T]) Handle(t *T) Handle[T] {
	if t == nil {
		return Handle[T]{}
	}
	b, addr := &p.blocks, uintptr(unsafe.Pointer(t))
	b.mustBeMade("pool.Pool.Handle")
	slot := b.stacks.Enter() // keeps the metadata mapped
	st := b.statusOf(addr)
	live := b.isLive(st, addr)
	h := Handle[T]{addr: addr}
	if live {
		h.gen = st.gen().load()
	}
	b.stacks.Leave(slot)
	if !live {
		b.misused("pool.Pool.Handle", addr, "")
	}
	return h
}

// Lookup returns the value that h refers to. It returns nil and false if the value is gone by Put,
// Retire, Reset or Close, or is of another pool. BenchmarkHandle measures it.
//
// Another goroutine may free the value a moment later. To prevent that, be the only one that frees
// values, or hold an [epoch.Guard] while others retire them.
func (p *Pool[T]) Lookup(h Handle[T]) (*T, bool) {
	b := &p.blocks
	slot := b.stacks.Enter() // keeps the metadata mapped
	st := b.statusOf(h.addr)
	found := st != nil && st.gen().load() == h.gen
	b.stacks.Leave(slot)
	if !found {
		return nil, false
	}
	return (*T)(pointer(h.addr)), true
}

// PutHandle is Put of the value that h refers to. It panics if the value is gone,
// even if another value has its memory now. Of two calls with one handle exactly
// one panics, even if they race. The zero Handle is a no-op.
func (p *Pool[T]) PutHandle(h Handle[T]) {
	if h.addr == 0 {
		return
	}
	b := &p.blocks
	b.mustBeMade("pool.Pool.PutHandle")
	slot := b.stacks.Enter() // keeps the metadata mapped
	st := b.statusOf(h.addr)
	found := st != nil && st.gen().advance(h.gen)
	b.stacks.Leave(slot)
	if !found {
		b.misused("pool.Pool.PutHandle", h.addr, "the value is gone")
	}
	p.Put((*T)(pointer(h.addr)))
}
