// Peer: freehold's Pool of objects, whose blocks are zero.

//go:build peer_pool

package alloc

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

const peer = "freehold-pool"

var objects = pool.New[object](freehold.NewHeap(nil), nil)
