package main

import (
	"fmt"

	"github.com/freehold-go/freehold"
)

var (
	libcContender     = cContender("libc")
	jemallocContender = cContender("jemalloc")
)

// cContender is the malloc of that name through cgo, where it is this process's.
func cContender(name string) contender {
	return contender{
		name:  name,
		title: name,
		frees: "node by node, through cgo; what they count as off-heap is for all of C, with what threads' caches keep",
		open: func() (list, error) {
			h, err := newCHeap(name)
			if err != nil {
				return nil, err
			}
			return &offList{
				get:     func() (*offNode, error) { return freehold.New[offNode](h) },
				put:     func(p *offNode) { freehold.Free(h, p) },
				bytes:   func() int64 { return int64(h.Stats().Allocated) },
				closing: func() error { return allFreed(name, h.Live()) },
			}, nil
		},
	}
}

// allFreed returns an error if an allocator counts live nodes after the last one
// was freed.
func allFreed(allocator string, live int) error {
	if live != 0 {
		return fmt.Errorf("every node is freed, yet %s counts %d", allocator, live)
	}
	return nil
}
