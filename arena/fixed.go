// Fixed: an arena in the caller's memory, with one chunk and without a parent.

package arena

import (
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/watch"
)

// NewFixed returns an arena that allocates from buf alone. If a block does not fit, the error
// matches [freehold.ErrOutOfMemory]. Use it for an existing buffer, such as an array, a block of
// another allocator or shared memory. Reset makes all of buf available again; Trim and TrimTo are
// no-ops.
//
// buf remains the caller's memory. The caller must not touch it before Close, nor
// free or unmap it while blocks are in use. It may be on the Go heap, since blocks
// hold no Go pointers. The arena keeps it from the collector until Close, and so
// does an ordinary pointer or slice into a block; a [freehold.Ptr], Slice or
// String does not. The capacity beyond len(buf) is not used. With
// FREEHOLD_DEBUG=poison NewFixed fills buf with 0xDB.
//
//go:noinline
func NewFixed(buf []byte) *Arena {
	// Not inlined, so that the arena and buf escape: a stack moves.
	a := newArena(nil, Options{MaxBytes: len(buf)})
	if len(buf) > 0 {
		mem := buf[:len(buf):len(buf)]
		a.chunks = []chunk{{mem: mem, dirtyTo: addressOf(mem) + uintptr(len(mem))}}
		a.regions = []region{regionOf(mem)}
		a.reserved = len(mem)
		lendGoMemory(mem, 1)
		if a.checked {
			poison.Leave(mem)
		}
	}
	return a
}

// lendGoMemory adds n arenas to the count of lenders of Go memory, if mem is Go memory.
func lendGoMemory(mem []byte, n int) {
	if watch.IsGoPointer(addressOf(mem)) {
		watch.LendGoMemory(n)
	}
}

// fixed reports whether the arena has no parent.
func (a *Arena) fixed() bool { return a.parent == nil }

// full is the error of a fixed arena for a block that does not fit.
func (a *Arena) full(size, align int) error {
	return fmt.Errorf("%w: a block of %s at a multiple of %d does not fit the arena, which has %d left of %d",
		freehold.ErrOutOfMemory, arg.Bytes(size), align, a.Remaining(), a.reserved)
}
