// Debug builds: memory without a block is filled with 0xDB.
//
// All bytes of the chunks that no block holds are poison, between blocks too.
// They are looked at when a block is put there and when the chunk goes back.

//go:build freehold_debug

package arena

import "github.com/freehold-go/freehold/internal/arg"

const (
	debug      = true
	poisonByte = 0xDB
)

// poison fills b.
func poison(b []byte) {
	for i := range b {
		b[i] = poisonByte
	}
}

// poisonSince fills what blocks since m may have written, when there is no
// current chunk.
func (a *Arena) poisonSince(m *Mark) {
	if m.current >= 0 {
		mem := a.chunks[m.current].mem
		poison(mem[m.top-addressOf(mem):])
	}
	for _, c := range a.chunks[m.used:a.used] {
		poison(c.mem)
	}
}

// mustBePoison checks what lies between two addresses of the current chunk.
func (a *Arena) mustBePoison(from, to uintptr) { mustBePoison(a.bytes(from, to)) }

func mustBePoison(b []byte) {
	for i, c := range b {
		if c != poisonByte {
			arg.Panicf("arena.Arena", "the byte at %#x was written while no block held it: after a Free, Rewind or Reset, or beyond the end of a block", addressOf(b[i:]))
		}
	}
}
