// Leaves: get and put in Go.
//
// In a leaf the goroutine keeps its processor: see runtime.go of package pin. A leaf changes
// nothing and calls a slow path, whose name ends in Missed, if
//
//   - the processor's stack has no block, or no room for one,
//   - the block to get is not free, or the block to put is not live or came through a cache,
//   - no block fits the request.
//
// All other calls in a leaf must be inlined. Otherwise package pin falls back on pins:
// TestLeavesTakeNoPins.

package pool

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

// functions holds implementations of the fast paths: get and put for a Pool, alloc and free for
// plain Blocks. Package pin expects at behind four words; callers pass 0. The pinned functions call
// a leaf with a slot; if the block is nil or the result false, they call the slow path after they
// have left the slot.
type functions struct {
	get   func(b *Blocks, _, _, _, at uintptr) (unsafe.Pointer, error)
	put   func(b *Blocks, p unsafe.Pointer, _, _, at uintptr) bool
	alloc func(b *Blocks, size, align int, _, at uintptr) ([]byte, error)
	free  func(b *Blocks, r []byte, at uintptr) bool
}

// All calls go through fast: assembly where it runs, or else plain. plain is the leaves if package
// pin can call them without a pin, or else pinned.
var fast, plain, pinned functions

func init() {
	pinned = functions{getPinned, putPinned, allocPinned, freePinned}
	plain = functions{
		get:   pin.Unpinned(getLeaf, getMissed, getPinned),
		put:   pin.Unpinned(putLeaf, putMissed, putPinned),
		alloc: pin.Unpinned(allocLeaf, allocMissed, allocPinned),
		free:  pin.Unpinned(freeLeaf, freeMissed, freePinned),
	}
	fast = assembled(plain)
}

//go:nosplit
//go:noinline
//go:nocheckptr
func getLeaf(b *Blocks, _, _, _, at uintptr) (unsafe.Pointer, error) {
	slot := pin.SlotAt(at)
	if !b.stacks.Has(slot) { // the zero value has none
		return getMissed(b, 0, 0, 0, at)
	}
	addr := b.stacks.ValueAt(slot).pop()
	if addr == 0 {
		return getMissed(b, 0, 0, 0, at)
	}
	return pointer(addr), nil
}

//go:nosplit
//go:noinline
//go:nocheckptr
func putLeaf(b *Blocks, p unsafe.Pointer, _, _, at uintptr) bool {
	slot := pin.SlotAt(at)
	s := b.table.Load().find(uintptr(p) & b.chunkMask)
	if s == nil || !b.stacks.Has(slot) {
		return putMissed(b, p, 0, 0, at)
	}
	st := b.statusIn(s, uintptr(p))
	if st == nil || st.load() != statusLive {
		return putMissed(b, p, 0, 0, at)
	}
	if !b.pushLive(b.stacks.ValueAt(slot), st, uintptr(p)) {
		return putMissed(b, p, 0, 0, at)
	}
	return true
}

//go:nosplit
//go:noinline
//go:nocheckptr
func allocLeaf(b *Blocks, size, align int, _, at uintptr) ([]byte, error) {
	slot := pin.SlotAt(at)
	if uint(size) > maxBlockBytes || !b.fits(size, align) || !b.stacks.Has(slot) {
		return allocMissed(b, size, align, 0, at)
	}
	addr := b.stacks.ValueAt(slot).pop()
	if addr == 0 {
		return allocMissed(b, size, align, 0, at)
	}
	return (*[maxBlockBytes]byte)(pointer(addr))[:size:size], nil
}

//go:nosplit
//go:noinline
//go:nocheckptr
func freeLeaf(b *Blocks, r []byte, at uintptr) bool {
	slot := pin.SlotAt(at)
	if uint(len(r)-1) >= uint(b.bytes) || len(r) != cap(r) {
		return freeMissed(b, r, at)
	}
	addr := addrOf(r)
	s := b.table.Load().find(addr & b.chunkMask)
	if s == nil || !b.stacks.Has(slot) {
		return freeMissed(b, r, at)
	}
	st := b.statusIn(s, addr)
	if st == nil || st.load() != statusLive {
		return freeMissed(b, r, at)
	}
	if !b.pushLive(b.stacks.ValueAt(slot), st, addr) {
		return freeMissed(b, r, at)
	}
	return true
}

// pop takes the last block off a stack and makes it live. If the stack is empty, or the block is
// not free, it returns 0 and changes nothing.
func (s *stack) pop() uintptr {
	n := s.n.load() - 1
	if n >= fullStackBlocks {
		return 0
	}
	e := s.entry(n)
	st := statusAt(e.status)
	if st.load() != statusFree {
		return 0
	}
	st.store(statusLive)
	s.n.store(n)
	return e.addr
}

// The slow paths. They are not inlined, so that leaves call nothing else.

//go:noinline
func getMissed(b *Blocks, _, _, _, at uintptr) (unsafe.Pointer, error) {
	if pin.Held(at) {
		return nil, nil
	}
	return b.getSlow(0)
}

//go:noinline
func putMissed(b *Blocks, p unsafe.Pointer, _, _, at uintptr) bool {
	if !pin.Held(at) {
		b.putSlow(0, uintptr(p))
		return true
	}
	return false
}

//go:noinline
func allocMissed(b *Blocks, size, align int, _, at uintptr) ([]byte, error) {
	if pin.Held(at) {
		return nil, nil
	}
	return b.allocSlow(0, size, align)
}

//go:noinline
func freeMissed(b *Blocks, r []byte, at uintptr) bool {
	if !pin.Held(at) {
		b.freeSlow(0, r)
		return true
	}
	return false
}

// The same with a pin, or a lock. A slow path begins at the slot where the leaf failed.

func getPinned(b *Blocks, _, _, _, _ uintptr) (unsafe.Pointer, error) {
	slot := b.stacks.Enter()
	p, _ := getLeaf(b, 0, 0, 0, uintptr(slot))
	b.stacks.Leave(slot)
	if p != nil {
		return p, nil
	}
	return b.getSlow(slot)
}

func putPinned(b *Blocks, p unsafe.Pointer, _, _, _ uintptr) bool {
	slot := b.stacks.Enter()
	done := putLeaf(b, p, 0, 0, uintptr(slot))
	b.stacks.Leave(slot)
	if !done {
		b.putSlow(slot, uintptr(p))
	}
	return true
}

func allocPinned(b *Blocks, size, align int, _, _ uintptr) ([]byte, error) {
	slot := b.stacks.Enter()
	r, _ := allocLeaf(b, size, align, 0, uintptr(slot))
	b.stacks.Leave(slot)
	if r != nil {
		return r, nil
	}
	return b.allocSlow(slot, size, align)
}

func freePinned(b *Blocks, r []byte, _ uintptr) bool {
	slot := b.stacks.Enter()
	done := freeLeaf(b, r, uintptr(slot))
	b.stacks.Leave(slot)
	if !done {
		b.freeSlow(slot, r)
	}
	return true
}

// allocSlow is the slow path of Alloc.
func (b *Blocks) allocSlow(slot, size, align int) ([]byte, error) {
	if !b.fits(size, align) {
		return b.noBlock("pool.Blocks.Alloc", size, align)
	}
	p, err := b.getSlow(slot)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// freeSlow is the slow path of Free.
func (b *Blocks) freeSlow(slot int, r []byte) {
	if uint(len(r)-1) >= uint(b.bytes) || len(r) != cap(r) {
		b.freeNone(r)
	} else {
		b.putSlow(slot, addrOf(r))
	}
}
