// List: a linked list of zeroed nodes, built and freed; an operation is one
// whole list.

//go:build !peer || peer_arena || peer_goheap || peer_ristretto_allocator

package main

import "github.com/freehold-go/freehold/lab/bench/sample"

func init() { loads["list"] = runList }

type list struct {
	head  *node
	nodes int
	sum   uint64
}

func runList(p *params) result {
	return runThreads(p, func(int) looper { return &list{nodes: p.Slots} })
}

func (l *list) loop(n int) {
	for range n {
		for key := range l.nodes {
			n, err := newNode()
			if err != nil {
				sample.Fail(err)
			}
			n.key = uint64(key)
			n.link(l.head)
			l.head = n
		}
		l.sum += l.head.key
		freeList(l.head)
		l.head = nil
	}
}

func (l *list) checksum() uint64 { return l.sum }
