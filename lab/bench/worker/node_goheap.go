// Node: one of a list on the Go heap, left to the collector as a whole.

//go:build peer_goheap

package main

type node struct {
	key     uint64
	payload [40]byte
	next    *node
}

func (n *node) link(next *node) { n.next = next }

func newNode() (*node, error) { return new(node), nil }

func freeList(*node) {}
