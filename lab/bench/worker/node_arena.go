// Node: one of a list in an arena, which ends as a whole.

//go:build peer_arena

package main

import "github.com/freehold-go/freehold"

type node struct {
	key     uint64
	payload [40]byte
	next    freehold.Ptr[node]
}

func (n *node) link(next *node) { n.next = freehold.PtrTo(next) }

func newNode() (*node, error) { return freehold.New[node](heap) }

func freeList(*node) { heap.Reset() }
