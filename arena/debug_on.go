// Debug builds: memory without a block is filled with 0xDB.
//
// Every byte of a chunk outside of blocks is poison. Alloc checks the bytes of a
// new block, and the return of a chunk to the parent checks the whole chunk.

//go:build freehold_debug

package arena

import "github.com/freehold-go/freehold/internal/arg"

const (
	debug      = true
	poisonByte = 0xDB
)

// poison fills b with poisonByte.
func poison(b []byte) {
	for i := range b {
		b[i] = poisonByte
	}
}

// claim panics if a byte in [from, to) of the current chunk was written, which is about to
// be of a block.
func (a *Arena) claim(from, to uintptr) { claim(a.bytes(from, to)) }

// claim panics if a byte of b, which is the arena's no longer, was written.
func claim(b []byte) {
	for i, c := range b {
		if c != poisonByte {
			arg.Panicf("arena.Arena", "the byte at %#x was written while no block held it: after a Free, Rewind or Reset, or beyond the end of a block", addressOf(b[i:]))
		}
	}
}
