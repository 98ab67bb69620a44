package main

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// The end of the process returns memory, and does not commit a file.
func main() {
	h := freehold.NewHeap(nil)
	h.Alloc(8, 8)
	b, err := buffer.Open("file", nil) // want `the Buffer of buffer.Open is never closed`
	if err != nil {
		return
	}
	b.Len()
}
