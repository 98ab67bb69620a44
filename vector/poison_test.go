//go:build !asan

package vector

import (
	"fmt"
	"testing"
	"unsafe"

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
	poison.FillBytes(bytesOf(c.blocks[len(c.blocks)-1]), poison.Fill)
	c.Close()
}

// A write to a dropped element is found by the Append that takes its memory, or when its
// block goes back.
func TestWriteToADroppedElement(t *testing.T) {
	defer poison.Set(true)()
	const first, second = 1, 40 // elements, in the blocks of these numbers
	appendAll := func(c *Chunked[uint64]) {
		for range 50 {
			c.Append(0)
		}
	}
	for _, tt := range []struct {
		element int
		find    func(c *Chunked[uint64])
	}{
		{first, appendAll}, {second, appendAll},
		{first, (*Chunked[uint64]).Clip},
		{first, (*Chunked[uint64]).Close},
	} {
		c := NewChunked[uint64](alloctest.New(t), nil)
		appendAll(c)
		b := unsafe.Slice((*byte)(unsafe.Pointer(c.At(tt.element))), 8)
		c.Clear()
		b[3]++
		panics.Want(t, fmt.Sprintf("freehold: vector.Chunked: byte 3 of the memory for element %d was written after that element was dropped", tt.element), func() { tt.find(c) })
		b[3]--
		c.Clear()
		c.Close()
	}
}
