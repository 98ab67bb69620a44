// Peer: freehold's arena.Shared, one for all goroutines.

//go:build peer_shared

package alloc

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/epoch"
)

const peer = "freehold-shared"

var heap = arena.NewShared(freehold.NewHeap(nil), nil)

func reset()             { heap.Reset() }
func enter() epoch.Guard { return heap.Enter() }
