// Peer: freehold's Heap through its C-like calls, which keep no sizes.

//go:build peer_pointer

package alloc

import "github.com/freehold-go/freehold"

const peer = "freehold-pointer"

var heap = freehold.NewHeap(nil)

func alloc(n int) (block, error)  { return found(heap.Malloc(n)) }
func zeroed(n int) (block, error) { return found(heap.Calloc(1, n)) }
func free(b block)                { heap.FreePointer(b) }

func realloc(b block, _, n int) (block, error) { return found(heap.ReallocPointer(b, n)) }

func found(b block) (block, error) {
	if b == nil {
		return nil, freehold.ErrOutOfMemory
	}
	return b, nil
}
