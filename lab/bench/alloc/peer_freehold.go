// Peer: freehold's Heap, called directly. The default when no tag says otherwise.

//go:build !peer

package alloc

import "github.com/freehold-go/freehold"

const peer = "freehold"

var heap = freehold.NewHeap(nil)

func freeList(n *node) {
	for n != nil {
		next := n.next.Get()
		freehold.Free(heap, n)
		n = next
	}
}
