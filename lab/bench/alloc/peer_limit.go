// Peer: a Limit around freehold's Heap.

//go:build peer_limit

package alloc

import "github.com/freehold-go/freehold"

const peer = "freehold-limit"

var heap = freehold.NewLimit(freehold.NewHeap(nil), cacheBytes)
