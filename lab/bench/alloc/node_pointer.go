//go:build peer_goheap || peer_ristretto_allocator

package alloc

// A node is one of a list. The collector does not see its link in a z.Allocator.
type node struct {
	key     uint64
	payload [40]byte
	next    *node
}

func (n *node) link(next *node) { n.next = next }
