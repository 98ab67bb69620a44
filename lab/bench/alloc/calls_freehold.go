// What all peers do whose heap is an allocator of freehold.

//go:build !peer || peer_interface || peer_arena || peer_shared || peer_sampled

package alloc

import "github.com/freehold-go/freehold"

func alloc(n int) (block, error)  { return heap.Alloc(n, 16) }
func zeroed(n int) (block, error) { return heap.Zeroed(n, 16) }
func free(b block)                { heap.Free(b) }

func realloc(b block, _, n int) (block, error) { return freehold.Realloc(heap, b, n, 16) }

func bump(n int) (block, error) { return heap.Alloc(n, 8) }
func bumpNew() (*object, error) { return freehold.New[object](heap) }
