// Peer: freehold's Heap, called directly. The default when no tag says otherwise.

//go:build !peer

package alloc

import "github.com/freehold-go/freehold"

const peer = "freehold"

var heap = freehold.NewHeap(nil)
