// Peer: freehold's arena.Shared, one for all goroutines.

//go:build peer_shared

package main

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/epoch"
)

var heap = arena.NewShared(freehold.NewHeap(nil), nil)

func bump(n int) (block, error) { return heap.Alloc(n, 8) }
func bumpNew() (*object, error) { return freehold.New[object](heap) }
func reset()                    { heap.Reset() }
func enter() epoch.Guard        { return heap.Enter() }
