// Peer: freehold's Pool of objects through a Cache, for one goroutine.

//go:build peer_pool_cache

package alloc

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

const peer = "freehold-pool-cache"

var objects = pool.New[object](freehold.NewHeap(nil), nil).NewCache()
