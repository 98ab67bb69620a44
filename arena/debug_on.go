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

// poisonSince poisons the memory of blocks since m. There is no current chunk.
func (a *Arena) poisonSince(m *Mark) {
	if m.current >= 0 {
		mem := a.chunks[m.current].mem
		poison(mem[m.top-addressOf(mem):])
	}
	for _, c := range a.chunks[m.used:a.used] {
		poison(c.mem)
	}
}

// mustBePoison panics if a byte in [from, to) of the current chunk was written.
func (a *Arena) mustBePoison(from, to uintptr) { mustBePoison(a.bytes(from, to)) }

func mustBePoison(b []byte) {
	for i, c := range b {
		if c != poisonByte {
			arg.Panicf("arena.Arena", "the byte at %#x was written while no block held it: after a Free, Rewind or Reset, or beyond the end of a block", addressOf(b[i:]))
		}
	}
}
