package main

import (
	"fmt"

	"github.com/freehold-go/freehold"
)

var freeholdContender = contender{
	name:  "freehold",
	title: "freehold",
	frees: "node by node",
	open: func() (list, error) {
		h := freehold.NewHeap(nil)
		return &offList{
			get:     func() (*offNode, error) { return freehold.New[offNode](h) },
			put:     func(p *offNode) { freehold.Free(h, p) },
			bytes:   func() int64 { return int64(h.Stats().LiveBytes) },
			closing: func() error { return closeHeap(h) },
		}, nil
	},
}

// closeHeap closes h, in which nothing should be left.
func closeHeap(h *freehold.Heap) error {
	left := h.Stats()
	h.Close()
	if left.Live != 0 {
		return fmt.Errorf("every node is freed, yet freehold counts %d blocks of %d bytes", left.Live, left.LiveBytes)
	}
	return nil
}
