// Fixed: an arena in memory that its user brings.
//
// It is an Arena without a parent: one chunk, which is there from the start and
// does not go, and never another.

package arena

import (
	"fmt"

	"github.com/freehold-go/freehold"
)

// NewFixed returns an arena whose blocks are cut off buf, and which never takes
// other memory: what does not fit is [freehold.ErrOutOfMemory]. It is for a buffer
// that is there anyway, such as an array, a block of another allocator or shared
// memory, and for a bound without a parent. Reset makes all of buf room again;
// Trim and TrimTo give nothing back.
//
// The memory is the caller's, who must not use it until Close, and leaves it where
// it is for as long as blocks are used. A buf on the Go heap will do: blocks hold
// no Go pointers. An ordinary pointer or slice into a block keeps it from the
// collector, and so does the arena until Close; a [freehold.Ptr], Slice or String
// does not. The capacity beyond len(buf) is not used. In builds with the tag
// freehold_debug buf is filled with 0xDB.
//
//go:noinline
func NewFixed(buf []byte) *Arena {
	// Not inlined, so that neither the arena nor buf is on a stack, which moves.
	a := newArena(nil, Options{MaxBytes: len(buf)})
	if len(buf) > 0 {
		mem := buf[:len(buf):len(buf)]
		a.chunks = []chunk{{mem: mem, dirtyTo: addressOf(mem) + uintptr(len(mem))}}
		a.regions = []region{regionOf(mem)}
		a.reserved = len(mem)
		if debug {
			poison(mem)
		}
	}
	return a
}

// fixed reports whether the arena has no parent.
func (a *Arena) fixed() bool { return a.parent == nil }

// full is the error of a fixed arena that has no room for a block.
func (a *Arena) full(size, align int) error {
	return fmt.Errorf("%w: a block of %d bytes at a multiple of %d does not fit the %d bytes that are left of the arena's %d",
		freehold.ErrOutOfMemory, size, align, a.Remaining(), a.reserved)
}
