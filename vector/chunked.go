// Chunked: a chunked array, whose blocks never move.
//
//	blocks | ---- | ---- | ---- | ---- | -------- | -------- | ...
//	                                        tail: the block of the last element
//
// Package chunks locates an element's block in a few instructions. There are four blocks of one
// size, then four of twice that size, and so on.

package vector

import (
	"fmt"
	"iter"
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/chunks"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/poison"
)

const firstBytes = 256 // the size of a first block, unless an element is larger

// Chunked is a growing array whose elements never move. [NewChunked] makes one.
//
// A pointer to an element is valid until the element is dropped, by Truncate, Clear or Close. The
// unused memory is at most a quarter of the elements' memory, or 1 KiB, or four elements. Each
// block takes 24 bytes on the Go heap; a million elements of 8 bytes have 57 blocks.
type Chunked[T any] struct {
	blocks [][]T // each at full length
	tail   []T   // the block that Append writes to; its length is the elements in it
	n      int
	first  uint // a first block has 1<<first elements
	freed  int  // counts calls that freed blocks, for All
	poison bool // memory without an element is poison
	base   container.Base
}

var chunkedKind = container.Kind{Type: "vector.Chunked", Maker: "vector.NewChunked", Is: "the vector is"}

// NewChunked returns an empty array over parent, which must outlive it. It takes no memory before
// the first element; Close frees all. NewChunked panics if parent is nil or T has a Go pointer; it
// then names the field.
func NewChunked[T any](parent freehold.Allocator, o *Options) *Chunked[T] {
	arg.PointerFree(chunkedKind.Maker, "", freehold.PointerFree[T]())
	c := &Chunked[T]{poison: poison.On()}
	container.Make(c, &c.base, &chunkedKind, parent, nameOf(o))
	c.first = uint(bits.Len(uint(firstBytes / max(unsafe.Sizeof(*new(T)), 1))))
	if c.first > 0 {
		c.first--
	}
	return c
}

// Len returns the number of elements.
func (c *Chunked[T]) Len() int { return c.n }

// Cap returns the number of elements that the array can hold without growing.
func (c *Chunked[T]) Cap() int { return int(chunks.Start(uint(len(c.blocks)), c.first)) }

// At returns element i, which does not move. It panics if i is out of range. It costs a few
// instructions more than an index into a slice (BenchmarkAt).
func (c *Chunked[T]) At(i int) *T {
	if uint(i) >= uint(c.n) {
		c.outOfRange(i)
	}
	block, at := chunks.Locate(uint(i), c.first)
	return &c.blocks[block][at]
}

// outOfRange is not inlined, so that At is.
//
//go:noinline
func (c *Chunked[T]) outOfRange(i int) {
	c.mustBeOpen("At")
	arg.Panicf("vector.Chunked.At", "index %d, and the length is %d", i, c.n)
}

// Append adds e at the end and returns the new element, which does not move. The error matches
// [freehold.ErrOutOfMemory]: it is the parent's, or the size in bytes overflows an int. The array
// is then unchanged.
func (c *Chunked[T]) Append(e T) (*T, error) {
	n := len(c.tail)
	if n == cap(c.tail) {
		if err := c.appendSlow(); err != nil {
			return nil, err
		}
		n = len(c.tail)
	}
	c.tail = c.tail[:n+1]
	c.tail[n] = e
	c.n++
	return &c.tail[n], nil
}

// appendSlow makes the next block the tail. If there is none, it takes one from the parent.
//
//go:noinline
func (c *Chunked[T]) appendSlow() error {
	c.mustBeOpen("Append")
	if c.n == c.Cap() {
		if err := c.addBlock(); err != nil {
			return err
		}
	}
	c.setTail()
	if c.poison {
		c.claim()
	}
	return nil
}

// addBlock takes a block from the parent.
func (c *Chunked[T]) addBlock() error {
	if len(c.blocks) > 4*(bits.UintSize-4-int(c.first)) {
		return fmt.Errorf("%w: more than %d elements would exceed the range of an index", freehold.ErrOutOfMemory, c.Cap())
	}
	n := int(chunks.Len(uint(len(c.blocks)), c.first))
	b, err := freehold.Grow(c.base.Parent, []T(nil), n)
	if err == nil {
		c.blocks = append(c.blocks, b[:n])
	}
	if c.poison && err == nil {
		poison.Leave(bytesOf(b[:n]))
	}
	return container.Refused(err)
}

// setTail makes the block of element n the tail, if there is one.
func (c *Chunked[T]) setTail() {
	c.tail = nil
	if block, at := chunks.Locate(uint(c.n), c.first); block < uint(len(c.blocks)) {
		b := c.blocks[block]
		c.tail = b[:at:len(b)]
		if c.poison {
			c.tail = b[:at:at] // so Append claims each element
		}
	}
}

// claim gives the tail room for the next element.
func (c *Chunked[T]) claim() {
	block, at := chunks.Locate(uint(c.n), c.first)
	b := c.blocks[block]
	c.mustBePoison(b, c.n-int(at), int(at), int(at)+1)
	c.tail = b[: at : at+1]
}

// mustBePoison panics if b[i:j], which holds no elements, was written to. b begins with element
// start.
func (c *Chunked[T]) mustBePoison(b []T, start, i, j int) {
	if at := poison.Take(bytesOf(b[i:j])); at >= 0 {
		size := int(unsafe.Sizeof(*new(T)))
		arg.Panicf("vector.Chunked", "byte %d of the memory for element %d was written after that element was dropped", at%size, start+i+at/size)
	}
}

// All returns an iterator over indexes and elements. The loop may change, add and drop elements:
// All yields the elements that exist when it reaches them.
func (c *Chunked[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		c.mustBeOpen("All")
		for i := 0; i < c.n; {
			block, at := chunks.Locate(uint(i), c.first)
			b, freed := c.blocks[block][at:], c.freed
			for k := 0; k < len(b) && i < c.n && freed == c.freed; k++ {
				if !yield(i, &b[k]) {
					return
				}
				i++
			}
		}
	}
}

// Truncate drops all but the first n elements. It keeps the memory for the next ones. It
// panics if n is negative or more than Len.
func (c *Chunked[T]) Truncate(n int) {
	c.mustBeOpen("Truncate")
	arg.Range("vector.Chunked.Truncate", "length", n, 0, c.n)
	if c.poison {
		for i := n; i < c.n; i++ {
			block, at := chunks.Locate(uint(i), c.first)
			poison.Leave(bytesOf(c.blocks[block][at : at+1]))
		}
	}
	c.n = n
	c.setTail()
}

// Clear is Truncate(0).
func (c *Chunked[T]) Clear() {
	c.mustBeOpen("Clear")
	c.Truncate(0)
}

// Grow makes room for n more elements, so that Append of them does not fail. It panics if n is
// negative. Errors are as for Append.
func (c *Chunked[T]) Grow(n int) error {
	c.mustBeOpen("Grow")
	arg.AtLeast("vector.Chunked.Grow", "n", n, 0)
	before := len(c.blocks)
	for c.Cap()-c.n < n {
		if err := c.addBlock(); err != nil {
			c.keep(before)
			return err
		}
	}
	return nil
}

// Clip frees the blocks without elements.
func (c *Chunked[T]) Clip() {
	c.mustBeOpen("Clip")
	n := len(c.blocks)
	for n > 0 && int(chunks.Start(uint(n-1), c.first)) >= c.n {
		n--
	}
	c.keep(n)
	c.setTail()
}

// keep frees all but the first n blocks.
func (c *Chunked[T]) keep(n int) {
	for i, b := range c.blocks[n:] {
		if c.poison {
			start := int(chunks.Start(uint(n+i), c.first))
			c.mustBePoison(b, start, min(max(c.n-start, 0), len(b)), len(b))
		}
		c.blocks[n+i] = nil // first, since Free panics if the parent finds a write behind b
		freehold.FreeSlice(c.base.Parent, b)
	}
	c.freed++
	c.blocks = c.blocks[:n]
}

// Close frees the memory. Pointers to elements are no longer valid. Later calls panic, except
// Close, Len, Cap and Stats.
func (c *Chunked[T]) Close() {
	if c.base.MayClose(&chunkedKind, len(c.blocks) > 0) {
		c.keep(0)
		c.n, c.blocks, c.tail = 0, nil, nil
		container.Closed(c, &c.base)
	}
}

func (c *Chunked[T]) mustBeOpen(call string) { c.base.MustBeOpen(&chunkedKind, call) }

// Stats returns the figures. It visits each block.
func (c *Chunked[T]) Stats() Stats {
	reserved := 0
	for _, b := range c.blocks {
		reserved += cap(b) * int(unsafe.Sizeof(*new(T)))
	}
	return Stats{c.base.Name, c.n, c.Cap(), reserved}
}
