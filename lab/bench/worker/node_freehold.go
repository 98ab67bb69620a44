// Node: one of a list on freehold's heap, freed one by one.

//go:build !peer

package main

import "github.com/freehold-go/freehold"

type node struct {
	key     uint64
	payload [40]byte
	next    freehold.Ptr[node]
}

func (n *node) link(next *node) { n.next = freehold.PtrTo(next) }

func newNode() (*node, error) { return freehold.New[node](heap) }

func freeList(n *node) {
	for n != nil {
		next := n.next.Get()
		freehold.Free(heap, n)
		n = next
	}
}
