// List: a linked list of zeroed nodes, built and freed; an operation is one
// whole list.

//go:build peer_arena || peer_goheap || peer_ristretto_allocator || (!peer_maxbytes && !peer_limit && !peer_arena && !peer_shared && !peer_cache && !peer_pool && !peer_pool_cache && !peer_ristretto_allocator && !peer_interface && !peer_pointer && !peer_goheap && !peer_modernc && !peer_modernc_mutex && !peer_ristretto && !peer_cgo && !peer_cgo_jemalloc && !peer_loop)

package main

func init() { loads["list"] = runList }

type list struct {
	head  *node
	nodes int
	sum   uint64
}

func runList(p *params) result {
	return runThreads(p, func(int) looper { return &list{nodes: p.slots} })
}

func (l *list) loop(n int) {
	for range n {
		for key := range l.nodes {
			n, err := newNode()
			if err != nil {
				fail(err)
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
