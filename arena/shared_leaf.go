// Leaves: Alloc and Zeroed of a Shared in Go.
//
// In a leaf the goroutine keeps its processor: see runtime.go of package pin. If the processor has
// no chunk of this generation, or the block does not fit it, a leaf changes nothing and calls a
// slow path, whose name ends in Missed.
//
// All other calls in a leaf must be inlined. Otherwise package pin falls back on pins:
// TestLeavesTakeNoPins.

package arena

import (
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/pin"
)

// functions holds implementations of Alloc and Zeroed. Package pin expects at behind four words;
// callers pass 0. The pinned functions call a leaf with a slot; if the block is nil, they call the
// slow path after they have left the slot.
type functions struct {
	alloc, zeroed func(s *Shared, size, align int, _, at uintptr) ([]byte, error)
}

// Alloc and Zeroed call fast: assembly where it runs, or else plain. plain is the leaves if package
// pin can call them without a pin, or else pinned.
var fast, plain, pinned functions

func init() {
	pinned = functions{allocPinned, zeroedPinned}
	plain = functions{
		alloc:  pin.Unpinned(allocLeaf, allocMissed, allocPinned),
		zeroed: pin.Unpinned(zeroedLeaf, zeroedMissed, zeroedPinned),
	}
	fast = assembled(plain)
}

//go:nosplit
//go:noinline
func allocLeaf(s *Shared, size, align int, _, at uintptr) ([]byte, error) {
	slot := pin.SlotAt(at)
	if size <= 0 || align <= 0 || align&(align-1) != 0 || !s.table.Has(slot) {
		return allocMissed(s, size, align, 0, at)
	}
	c := s.table.ValueAt(slot)
	mem := c.mem
	from, to := c.place(size, align)
	if c.generation != s.generation.Load() || from > to || to > uint(len(mem)) {
		return allocMissed(s, size, align, 0, at)
	}
	c.count(to, size)
	return mem[from:to:to], nil
}

//go:nosplit
//go:noinline
func zeroedLeaf(s *Shared, size, align int, _, at uintptr) ([]byte, error) {
	slot := pin.SlotAt(at)
	if size <= 0 || align <= 0 || align&(align-1) != 0 || !s.table.Has(slot) {
		return zeroedMissed(s, size, align, 0, at)
	}
	c := s.table.ValueAt(slot)
	mem := c.mem
	from, to := c.place(size, align)
	if c.generation != s.generation.Load() || !c.zero || from > to || to > uint(len(mem)) {
		return zeroedMissed(s, size, align, 0, at)
	}
	c.count(to, size)
	return mem[from:to:to], nil
}

// The slow paths. They are not inlined, so that leaves call nothing else.

//go:noinline
func allocMissed(s *Shared, size, align int, _, at uintptr) ([]byte, error) {
	if pin.Held(at) {
		return nil, nil
	}
	b, _, err := s.refill(size, align, false)
	return b, err
}

//go:noinline
func zeroedMissed(s *Shared, size, align int, _, at uintptr) ([]byte, error) {
	if pin.Held(at) {
		return nil, nil
	}
	return s.zeroSlow(size, align)
}

// The same with a pin, or a lock.

func allocPinned(s *Shared, size, align int, _, _ uintptr) ([]byte, error) {
	slot := s.table.Enter()
	b, _ := allocLeaf(s, size, align, 0, uintptr(slot))
	s.table.Leave(slot)
	if b == nil {
		return allocMissed(s, size, align, 0, pin.None)
	}
	asan.Unpoison(b)
	return b, nil
}

func zeroedPinned(s *Shared, size, align int, _, _ uintptr) ([]byte, error) {
	slot := s.table.Enter()
	b, _ := zeroedLeaf(s, size, align, 0, uintptr(slot))
	s.table.Leave(slot)
	if b == nil {
		return zeroedMissed(s, size, align, 0, pin.None)
	}
	asan.Unpoison(b)
	return b, nil
}
