// Check: the invariants of a Chunked.
//
//   - block i has as many elements as package chunks says
//   - Append writes element n, whose block is the tail, unless the tail is full

package vector

import (
	"fmt"
	"unsafe"

	"github.com/freehold-go/freehold/internal/chunks"
)

// check returns what is wrong, or "".
func (c *Chunked[T]) check() string {
	for i, b := range c.blocks {
		if want := int(chunks.Len(uint(i), c.first)); len(b) != want {
			return fmt.Sprintf("block %d has %d elements, want %d", i, len(b), want)
		}
	}
	if c.n < 0 || c.n > c.Cap() {
		return fmt.Sprintf("%d elements of %d", c.n, c.Cap())
	}
	if len(c.tail) == cap(c.tail) || unsafe.Sizeof(*new(T)) == 0 {
		return ""
	}
	block, at := chunks.Locate(uint(c.n), c.first)
	if block >= uint(len(c.blocks)) || &c.tail[:len(c.tail)+1][len(c.tail)] != &c.blocks[block][at] {
		return fmt.Sprintf("the tail has %d elements, and element %d is element %d of block %d", len(c.tail), c.n, at, block)
	}
	return ""
}
