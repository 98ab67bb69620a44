// Peer: freehold's Arena, for one goroutine.
//
// The peers of the bump loads define these names too:
//
//	bump bumpNew reset    a block, a zero object, and the end of all of them
//	enter                 a guard, under which others may reset

//go:build peer_arena

package main

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

var heap = arena.New(freehold.NewHeap(nil), nil)

func bump(n int) (block, error) { return heap.Alloc(n, 8) }
func bumpNew() (*object, error) { return freehold.New[object](heap) }
func reset()                    { heap.Reset() }
