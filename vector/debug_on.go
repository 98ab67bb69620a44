// Debug builds: a Chunked checks its invariants when it grows or shrinks, and memory
// without an element is filled with 0xDB.

//go:build freehold_debug

package vector

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

const (
	debug      = true
	poisonByte = 0xDB
)

func (c *Chunked[T]) mustBeWhole() {
	if fault := c.check(); fault != "" {
		arg.Panicf("vector.Chunked", "%s", fault)
	}
}

// fill fills the memory of elements that are dropped, or not there yet.
func (c *Chunked[T]) fill(s []T) {
	b := bytesOf(s)
	for i := range b {
		b[i] = poisonByte
	}
}

// mustBeFilled panics if the memory of the next element was written to.
func (c *Chunked[T]) mustBeFilled(e *T) {
	for i, b := range bytesOf(unsafe.Slice(e, 1)) {
		if b != poisonByte {
			arg.Panicf("vector.Chunked", "byte %d of the memory for element %d was written after that element was dropped", i, c.n)
		}
	}
}
