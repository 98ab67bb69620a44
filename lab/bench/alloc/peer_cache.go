// Peer: freehold's Heap through a Cache, for one goroutine.

//go:build peer_cache

package alloc

import "github.com/freehold-go/freehold"

const peer = "freehold-cache"

var heap = freehold.NewHeap(nil).NewCache()
