// List: a linked list of zeroed nodes, built and freed; an operation is one
// whole list.

//go:build !peer || peer_arena || peer_goheap || peer_ristretto_allocator

package alloc

import (
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

func BenchmarkList(b *testing.B) {
	measure.Run(b, "", peer, func(b *testing.B) {
		nodes := measure.Size().Blocks("List", 0)
		measure.Loops(b, 1, 1, func(int) measure.Loop {
			return func(n int) (sum uint64) {
				for range n {
					var head *node
					for key := range nodes {
						n := must(newNode())
						n.key = uint64(key)
						n.link(head)
						head = n
					}
					sum += head.key
					freeList(head)
				}
				return sum
			}
		})
	})
}
