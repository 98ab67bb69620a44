// Builds with -asan: the sanitizer reports each access to a free block, and to the padding
// behind one that is in use.

//go:build asan && !freehold_debug

package pool

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/asan"
)

const debugging = true

// poison makes the block at addr inaccessible.
func (b *Blocks) poison(addr uintptr) { asan.Poison(b.memory(addr, b.stride)) }

// poisonAll is poison for the blocks of a chunk.
func (b *Blocks) poisonAll(c *chunk) { asan.Poison(c.mem) }

// claim makes the block at addr accessible, but for its padding.
func (b *Blocks) claim(addr uintptr) { asan.Unpoison(b.memory(addr, uintptr(b.bytes))) }

// claimAll is claim for each entry.
func (b *Blocks) claimAll(in []entry) {
	for _, e := range in {
		b.claim(e.addr)
	}
}

func (b *Blocks) memory(addr, size uintptr) []byte { return unsafe.Slice((*byte)(pointer(addr)), size) }

func (b *Blocks) mustEndUntouched(string, uintptr) {}
func (b *Blocks) overrun(uintptr) int              { return 0 }
