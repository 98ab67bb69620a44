// Handles: references that know when their value is gone.
//
// Each block of a typed pool has a generation, which goes up when the value is
// put back. A handle has the address and the generation. The two never come
// together twice in a process: a chunk's generations begin above all that were
// given back before.

package pool

import "unsafe"

// Handle refers to a value of a [Pool] and may be stored off-heap. It keeps
// nothing alive. The zero Handle refers to nothing. Two of them are equal if
// they refer to the same value. The generation has 64 bits and never wraps.
type Handle[T any] struct {
	_    [0]*T // so that Handle[A] does not convert to Handle[B]
	addr uintptr
	gen  uint64
}

// Handle returns a reference to t, which is valid until its Put or Retire. The
// zero Handle is nil's. It panics if t is no live value of the pool.
func (p *Pool[T]) Handle(t *T) Handle[T] {
	if t == nil {
		return Handle[T]{}
	}
	b, addr := &p.blocks, uintptr(unsafe.Pointer(t))
	slot := b.stacks.Enter() // keeps the chunk's side
	st := b.stateOf(addr)
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

// Lookup returns the value that h refers to; nil and false if it is gone, by
// Put, Retire, Reset, Trim or Close, or of another pool. It costs 7 ns.
//
// That the value is not gone a moment later is for the caller to see to, who
// puts and retires values himself or holds a [Guard] while others retire them.
func (p *Pool[T]) Lookup(h Handle[T]) (*T, bool) {
	b := &p.blocks
	slot := b.stacks.Enter() // keeps the chunk's side
	st := b.stateOf(h.addr)
	found := st != nil && st.gen().load() == h.gen
	b.stacks.Leave(slot)
	if !found {
		return nil, false
	}
	return (*T)(pointer(h.addr)), true
}

// PutHandle puts back the value that h refers to. It panics if that is gone,
// even if another value has taken its place. Of two calls with the same handle
// one panics, even at the very same moment. The zero Handle is accepted.
func (p *Pool[T]) PutHandle(h Handle[T]) {
	if h.addr == 0 {
		return
	}
	b := &p.blocks
	slot := b.stacks.Enter() // keeps the chunk's side
	st := b.stateOf(h.addr)
	found := st != nil && st.gen().advance(h.gen)
	b.stacks.Leave(slot)
	if !found {
		b.misused("pool.Pool.PutHandle", h.addr, "the value is gone")
	}
	p.Put((*T)(pointer(h.addr)))
}
