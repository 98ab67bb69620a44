// Node: one of a list in a z.Allocator, which ends as a whole.

//go:build peer_ristretto_allocator

package main

import "unsafe"

// A node's link is seen by nobody: the memory has no pointers to the collector.
type node struct {
	key     uint64
	payload [40]byte
	next    *node
}

func (n *node) link(next *node) { n.next = next }

func newNode() (*node, error) {
	b := heap.AllocateAligned(int(unsafe.Sizeof(node{})))
	return (*node)(unsafe.Pointer(unsafe.SliceData(b))), nil
}

func freeList(*node) { heap.Reset() }
