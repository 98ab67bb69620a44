// Stacks: per-processor free lists.
//
// Only the holder of a slot (internal/pin) uses the stack there. While it holds the slot it must
// not block, allocate, panic or touch memory that may fault. Tables, metadata and stacks do not
// fault: they have been written to before.
//
// The slow path is a loop of enter, try, leave, since after a miss the goroutine may be at another
// slot. It asks for the slot of the miss, to fill the stack that the next call will use.

package pool

import (
	"math/bits"
	"unsafe"
)

// entry is a free block on a stack or in transit.
type entry struct {
	addr   uintptr
	status uintptr // address of the block's status
}

// stack is a processor's free list, last in, first out.
type stack struct {
	n        word   // number of entries
	capacity uint64 // maximum of n
	entries  [fullStackBlocks]entry
}

// noStack is the sentinel in an empty slot: a stack that is always empty and always full, so it is
// never written.
var noStack stack

// entry returns entry n without a check; n is below fullStackBlocks. Leaves call it, and with -N a
// check would take more stack than they may use.
func (s *stack) entry(n uint64) *entry {
	return (*entry)(unsafe.Add(unsafe.Pointer(&s.entries), n*uint64(unsafe.Sizeof(entry{}))))
}

// some reports whether the stack has entries.
func (s *stack) some() bool { return s.n.load() > 0 }

// moveOldest moves the entries at the bottom of the stack to out.
func (s *stack) moveOldest(out []entry) int {
	n := s.n.load()
	moved := copy(out, s.entries[:n])
	copy(s.entries[:], s.entries[moved:n])
	s.n.store(n - uint64(moved))
	return moved
}

// getSlow is the slow path of get: the stack is empty or missing, or its next block is not free.
func (b *Blocks) getSlow(slot int) (unsafe.Pointer, error) {
	b.mustBeMade("pool.Pool.Get") // alloc has checked already
	call := b.getCall()
	b.dropLive(call, slot)
	var batch [fullStackBlocks / 2]entry
	n, err := b.take(call, batch[:b.capacity/2])
	if err != nil {
		return nil, err
	}
	b.store(slot, batch[:n-1])
	e := batch[n-1]
	statusAt(e.status).store(statusLive)
	return pointer(e.addr), nil
}

// dropLive removes the next block of the stack and panics if that block is not free. Otherwise it
// is a no-op.
func (b *Blocks) dropLive(call string, slot int) {
	twice := uintptr(0)
	slot = b.stacks.EnterAt(slot)
	s := b.stacks.Value(slot)
	if n := s.n.load(); n > 0 && statusAt(s.entries[n-1].status).load() != statusFree {
		s.n.store(n - 1)
		twice = s.entries[n-1].addr
	}
	b.stacks.Leave(slot)
	if twice != 0 {
		b.misused(call, twice, freedTwice)
	}
}

// putSlow is the slow path of put: the stack is full or missing, or the block came through a cache
// or is not live.
func (b *Blocks) putSlow(slot int, addr uintptr) {
	for tries := 0; ; tries++ {
		slot = b.stacks.EnterAt(slot)
		done, misused := b.push(b.stacks.Value(slot), addr)
		b.stacks.Leave(slot)
		switch {
		case done:
			return
		case misused:
			b.misused(b.putCall(), addr, "")
		case tries > 1 || !b.makeRoom(slot):
			b.putCentral(addr)
			return
		}
	}
}

// makeRoom gives the slot a stack, or moves half of a full stack to the central free list. It
// reports whether there is a stack.
func (b *Blocks) makeRoom(slot int) bool {
	var oldest [fullStackBlocks / 2]entry
	moved := 0
	slot = b.stacks.EnterAt(slot)
	s := b.stacks.Value(slot)
	if s != &noStack && s.n.load() >= s.capacity {
		moved = s.moveOldest(oldest[:b.capacity/2])
	}
	b.stacks.Leave(slot)
	if moved > 0 {
		b.giveBack(oldest[:moved], statusFree)
	}
	return s != &noStack || b.addStack(slot)
}

// push frees the live block at addr onto a stack. If the stack is full, or there is no such block
// (misused), it is a no-op. The caller holds the stack's slot.
func (b *Blocks) push(s *stack, addr uintptr) (done, misused bool) {
	st := b.statusOf(addr)
	if !b.isLive(st, addr) {
		return false, true
	}
	return b.pushLive(s, st, addr), false
}

// pushLive is push for a live block with the status at st.
func (b *Blocks) pushLive(s *stack, st *status, addr uintptr) bool {
	n := s.n.load()
	if n >= s.capacity {
		return false
	}
	st.store(statusFree)
	if b.versioned {
		st.age()
	}
	*s.entry(n) = entry{addr, uintptr(unsafe.Pointer(st))}
	s.n.store(n + 1)
	return true
}

// putCentral frees a block to the central free list, for a slot without a stack.
func (b *Blocks) putCentral(addr uintptr) {
	if b.checked {
		b.mustEndUntouched(b.putCall(), addr)
	}
	e, ok := b.retireAs(addr, statusFree)
	if !ok {
		b.misused(b.putCall(), addr, "")
	}
	b.giveBack([]entry{e}, statusFree)
}

// retireAs changes the status of the live block at addr to another. It reports whether there was a
// live block.
func (b *Blocks) retireAs(addr uintptr, to status) (entry, bool) {
	slot := b.stacks.Enter() // keeps the metadata mapped
	st := b.statusOf(addr)
	ok := b.isLive(st, addr)
	if ok {
		st.store(to)
		if b.versioned {
			st.age()
		}
	}
	b.stacks.Leave(slot)
	return entry{addr, uintptr(unsafe.Pointer(st))}, ok
}

// store pushes blocks from carve onto the stack of the current processor. If that is too full or
// missing, they go to the central free list.
func (b *Blocks) store(slot int, in []entry) {
	for tries := 0; tries < 2 && len(in) > 0; tries++ {
		kept := false
		slot = b.stacks.EnterAt(slot)
		s := b.stacks.Value(slot)
		if n := s.n.load(); n+uint64(len(in)) <= s.capacity {
			copy(s.entries[n:], in)
			for _, e := range in {
				statusAt(e.status).store(statusFree)
			}
			s.n.store(n + uint64(len(in)))
			kept = true
		}
		b.stacks.Leave(slot)
		if kept {
			return
		}
		if s != &noStack || !b.addStack(slot) {
			break
		}
	}
	if len(in) > 0 {
		b.giveBack(in, statusMoving)
	}
}

// addStack gives a slot a stack. It reports false if the slot has one, or cannot have one.
func (b *Blocks) addStack(slot int) bool {
	return !b.checked && b.stacks.Install(b.stacks.Slot(slot), func() *stack { return &stack{capacity: b.capacity} })
}

// getSome is get for one to len(out) blocks. On an error it gets none.
func (b *Blocks) getSome(out []entry) (int, error) {
	n := 0
	slot := b.stacks.Enter()
	s := b.stacks.Value(slot)
	top := s.n.load()
	for n < len(out) && top > 0 && statusAt(s.entries[top-1].status).load() == statusFree {
		top--
		out[n] = s.entries[top]
		statusAt(out[n].status).store(statusLive)
		n++
	}
	if n > 0 {
		s.n.store(top)
	}
	b.stacks.Leave(slot)
	if n > 0 {
		return n, nil
	}
	const call = "pool.Blocks.GetBatch"
	b.dropLive(call, slot)
	n, err := b.take(call, out)
	for _, e := range out[:n] {
		statusAt(e.status).store(statusLive)
	}
	return n, err
}

// putSome frees the first blocks of src and returns their number. They fill up the stack, or go to
// the central free list if the stack is already full. It stops at the first block that is not live.
func (b *Blocks) putSome(src [][]byte) int {
	n := 0
	slot := b.stacks.Enter()
	s := b.stacks.Value(slot)
	if s == &noStack {
		b.stacks.Leave(slot)
		b.addStack(slot)
		slot = b.stacks.EnterAt(slot)
		s = b.stacks.Value(slot)
	}
	if s != &noStack {
		top := s.n.load()
		n = b.endSome(src, s.entries[top:s.capacity])
		s.n.store(top + uint64(n))
	}
	b.stacks.Leave(slot)
	if n > 0 {
		return n
	}
	var batch [fullStackBlocks]entry
	slot = b.stacks.EnterAt(slot)
	n = b.endSome(src, batch[:])
	b.stacks.Leave(slot)
	b.giveBack(batch[:n], statusFree)
	return n
}

// endSome frees the first blocks of src, up to one that is not live, and moves them to out. The
// caller holds a slot. src has been read before, so reading it does not fault.
func (b *Blocks) endSome(src [][]byte, out []entry) int {
	src = src[:min(len(src), len(out))]
	base, statuses := uintptr(emptySlot), uintptr(0) // of the previous block's chunk
	for i, r := range src {
		addr := addrOf(r)
		if addr&b.chunkMask != base {
			c := b.chunkOf(addr)
			if c == nil {
				return i
			}
			base, statuses = c.base, c.statuses
		}
		at, rest := bits.Mul64(uint64(addr-base), b.recip)
		st := statusAt(statuses + uintptr(at)<<statusShift)
		if rest >= b.recip || st.load() != statusLive {
			return i
		}
		st.store(statusFree)
		out[i] = entry{addr, uintptr(unsafe.Pointer(st))}
	}
	return len(src)
}

// drain returns the blocks on the stacks of all processors to their chunks. If there are any, it
// stops the world and reports true.
func (b *Blocks) drain() bool {
	if !b.stacks.Any((*stack).some) {
		return false
	}
	b.stacks.Drain((*stack).some, func(taken []*stack) {
		for _, s := range taken {
			b.giveBack(s.entries[:s.n.load()], statusFree)
		}
	})
	return true
}
