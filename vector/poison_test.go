//go:build !asan

package vector

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/poison"
)

// A Close that panics for a late write frees no block twice when it is called again.
func TestCloseOfAChunkedThatWasWrittenLate(t *testing.T) {
	defer poison.Set(true)()
	const late = "freehold: vector.Chunked: byte 0 of the memory for element 99 was written after that element was dropped"
	c := NewChunked[int](alloctest.New(t), nil)
	for range 100 {
		freehold.Must(c.Append(1))
	}
	last := c.At(99)
	was := *last
	c.Truncate(99)
	*last = was
	for range 2 {
		panics.Want(t, late, c.Close)
	}
	poison.FillBytes(bytesOf(c.blocks[len(c.blocks)-1]))
	c.Close()
}
