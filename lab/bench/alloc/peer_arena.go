// Peer: freehold's Arena, for one goroutine.

//go:build peer_arena

package alloc

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

const peer = "freehold-arena"

var heap = arena.New(freehold.NewHeap(nil), nil)

func reset() { heap.Reset() }
