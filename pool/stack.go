// Stacks: each processor's free blocks.
//
// Whoever holds a place (internal/pin) has the stack there to itself. While it
// is held nothing may block, allocate, panic or touch memory that may fault;
// tables, sides and stacks have been written to before.
//
// The slow path is a loop of enter, try, leave: after a miss the goroutine may
// be at another place. It asks for the one where the fast path missed, or it
// would fill a stack that the next call does not look at.

package pool

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// entry is a free block on its way.
type entry struct {
	addr  uintptr
	state uintptr // where the block's state stands
}

// stack is a processor's free blocks. The last one in is used first.
type stack struct {
	n       word   // entries
	room    uint64 // how many there may be
	entries [fullStackBlocks]entry
}

// moveOldest moves the entries at the bottom of the stack to out.
func (s *stack) moveOldest(out []entry) int {
	n := s.n.load()
	moved := copy(out, s.entries[:n])
	copy(s.entries[:], s.entries[moved:n])
	s.n.store(n - uint64(moved))
	return moved
}

// stackAt returns the stack at a place that is held, nil if there is none.
func (b *Blocks) stackAt(place int) *stack {
	if uint(place) < uint(len(b.stacks)) {
		return b.stacks[place].Load()
	}
	return nil
}

// get returns a free block, which is live from then on.
func (b *Blocks) get() (unsafe.Pointer, error) {
	place := b.places.Enter()
	if s := b.stackAt(place); s != nil {
		if n := s.n.load() - 1; n < fullStackBlocks {
			e := s.entries[n]
			if st := stateAt(e.state); st.load() == stateFree {
				st.store(stateLive)
				s.n.store(n)
				b.places.Leave(place)
				return cleared(e.addr, b.zero)
			}
		}
	}
	b.places.Leave(place)
	return b.getSlow(place)
}

// cleared returns the block at addr, with its first bytes cleared.
func cleared(addr, bytes uintptr) (unsafe.Pointer, error) {
	p := pointer(addr)
	clear(unsafe.Slice((*byte)(p), bytes))
	return p, nil
}

// getSlow is get where the stack has no block to give.
func (b *Blocks) getSlow(place int) (unsafe.Pointer, error) {
	b.dropLive(place)
	var batch [fullStackBlocks / 2]entry
	n, err := b.take(batch[:b.room/2])
	if err != nil {
		return nil, err
	}
	if b.zero > 0 { // get will write to them while it holds a place
		for _, e := range batch[:n-1] {
			*(*byte)(pointer(e.addr)), *(*byte)(pointer(e.addr + b.zero - 1)) = 0, 0
		}
	}
	b.store(place, batch[:n-1])
	e := batch[n-1]
	stateAt(e.state).store(stateLive)
	return cleared(e.addr, b.zero)
}

// dropLive panics if the next block of the stack is not free; from then on it
// is nobody's but its owner's.
func (b *Blocks) dropLive(place int) {
	twice := uintptr(0)
	place = b.places.EnterAt(place)
	if s := b.stackAt(place); s != nil {
		if n := s.n.load(); n > 0 && stateAt(s.entries[n-1].state).load() != stateFree {
			s.n.store(n - 1)
			twice = s.entries[n-1].addr
		}
	}
	b.places.Leave(place)
	if twice != 0 {
		freedTwice(twice)
	}
}

// put takes back the block at p.
func (b *Blocks) put(p unsafe.Pointer) {
	place := b.places.Enter()
	done, _ := b.push(b.stackAt(place), uintptr(p))
	b.places.Leave(place)
	if !done {
		b.putSlow(place, uintptr(p))
	}
}

// putSlow is put where the stack is full or missing, or there is no such block.
func (b *Blocks) putSlow(place int, addr uintptr) {
	for tries := 0; ; tries++ {
		var oldest [fullStackBlocks / 2]entry
		moved := 0
		place = b.places.EnterAt(place)
		s := b.stackAt(place)
		done, misused := b.push(s, addr)
		if !done && !misused && s != nil {
			moved = s.moveOldest(oldest[:b.room/2])
			done, misused = b.push(s, addr)
		}
		b.places.Leave(place)
		if moved > 0 {
			b.giveBack(oldest[:moved])
		}
		switch {
		case done:
			return
		case misused:
			b.misused(b.putName(), addr, "")
		case tries > 0 || !b.addStack(place):
			b.putCentral(addr)
			return
		}
	}
}

// push puts the block at addr on a stack that is held. It has done nothing if
// the stack is full or missing, or if there is no such block.
func (b *Blocks) push(s *stack, addr uintptr) (done, misused bool) {
	st := b.stateOf(addr)
	if !b.isLive(st, addr) {
		return false, true
	}
	if s == nil {
		return false, false
	}
	n := s.n.load()
	if n >= s.room {
		return false, false
	}
	st.store(stateFree)
	if b.counted {
		st.age()
	}
	s.entries[n%fullStackBlocks] = entry{addr, uintptr(unsafe.Pointer(st))}
	s.n.store(n + 1)
	return true, false
}

// putCentral is put where there is no stack.
func (b *Blocks) putCentral(addr uintptr) {
	e, ok := b.retireAs(addr, stateFree)
	if !ok {
		b.misused(b.putName(), addr, "")
	}
	b.giveBack([]entry{e})
}

// retireAs ends the life of the block at addr, which gets the given state. It
// reports whether there was one.
func (b *Blocks) retireAs(addr uintptr, to state) (entry, bool) {
	place := b.places.Enter() // keeps the chunk's side
	st := b.stateOf(addr)
	ok := b.isLive(st, addr)
	if ok {
		st.store(to)
		if b.counted {
			st.age()
		}
	}
	b.places.Leave(place)
	return entry{addr, uintptr(unsafe.Pointer(st))}, ok
}

// store puts free blocks on the stack of the processor that it runs on, and
// gives them back to the central where that is full or missing.
func (b *Blocks) store(place int, in []entry) {
	for tries := 0; tries < 2 && len(in) > 0; tries++ {
		kept := false
		place = b.places.EnterAt(place)
		s := b.stackAt(place)
		if s != nil {
			if n := s.n.load(); n+uint64(len(in)) <= s.room {
				copy(s.entries[n:], in)
				s.n.store(n + uint64(len(in)))
				kept = true
			}
		}
		b.places.Leave(place)
		if kept {
			return
		}
		if s != nil || !b.addStack(place) {
			break
		}
	}
	if len(in) > 0 {
		b.giveBack(in)
	}
}

// addStack reports whether there can be a stack at place, and sees to it.
func (b *Blocks) addStack(place int) bool {
	if place >= len(b.stacks) {
		return false
	}
	if b.stacks[place].Load() == nil {
		b.stacks[place].CompareAndSwap(nil, &stack{room: b.room})
	}
	return true
}

// getSome is get for several blocks: between one and len(out), or an error.
func (b *Blocks) getSome(out []entry) (int, error) {
	n := 0
	place := b.places.Enter()
	if s := b.stackAt(place); s != nil {
		top := s.n.load()
		for n < len(out) && top > 0 && stateAt(s.entries[top-1].state).load() == stateFree {
			top--
			out[n] = s.entries[top]
			stateAt(out[n].state).store(stateLive)
			n++
		}
		s.n.store(top)
	}
	b.places.Leave(place)
	if n > 0 {
		return n, nil
	}
	b.dropLive(place)
	n, err := b.take(out)
	for _, e := range out[:n] {
		stateAt(e.state).store(stateLive)
	}
	return n, err
}

// putSome is put for the first blocks of src, and returns how many it took: as
// many as the stack has room for, or, if it has none, as go to the central at
// once. It stops before a block that put has to look at.
func (b *Blocks) putSome(src [][]byte) int {
	n := 0
	place := b.places.Enter()
	s := b.stackAt(place)
	if s == nil {
		b.places.Leave(place)
		b.addStack(place)
		place = b.places.EnterAt(place)
		s = b.stackAt(place)
	}
	if s != nil {
		top := s.n.load()
		n = b.endSome(src, s.entries[top:s.room])
		s.n.store(top + uint64(n))
	}
	b.places.Leave(place)
	if n > 0 {
		return n
	}
	var batch [fullStackBlocks]entry
	place = b.places.EnterAt(place)
	n = b.endSome(src, batch[:])
	b.places.Leave(place)
	b.giveBack(batch[:n])
	return n
}

// endSome frees the first blocks of src, up to one that is not live, and sets
// out to them. A place is held, and src has been read before.
func (b *Blocks) endSome(src [][]byte, out []entry) int {
	src = src[:min(len(src), len(out))]
	base, states := uintptr(emptySlot), uintptr(0) // of the chunk of the block before
	for i, r := range src {
		addr := addrOf(r)
		if addr&b.chunkMask != base {
			c := b.chunkOf(addr)
			if c == nil {
				return i
			}
			base, states = c.base, c.states
		}
		at, rest := bits.Mul64(uint64(addr-base), b.recip)
		st := stateAt(states + uintptr(at)<<stateShift)
		if rest >= b.recip || st.load() != stateLive && !b.isLive(st, addr) {
			return i
		}
		st.store(stateFree)
		out[i] = entry{addr, uintptr(unsafe.Pointer(st))}
	}
	return len(src)
}

// drain empties the stacks of all processors and reports whether there was
// anything on them.
func (b *Blocks) drain() bool {
	var taken []*stack
	for i := range b.stacks {
		if s := b.stacks[i].Load(); s != nil && s.n.load() > 0 && b.stacks[i].CompareAndSwap(s, nil) {
			taken = append(taken, s)
		}
	}
	if len(taken) == 0 {
		return false
	}
	b.places.Wait()
	for _, s := range taken {
		b.giveBack(s.entries[:s.n.load()])
	}
	return true
}

func freedTwice(addr uintptr) {
	panic(fmt.Sprintf("freehold: the block at %#x was freed by two goroutines at once; found when it was handed out again", addr))
}
