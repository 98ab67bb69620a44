// Peer: freehold's arena.Shared, one for all goroutines.

//go:build peer_shared

package main

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/epoch"
)

var heap = arena.NewShared(freehold.NewHeap(nil), nil)

func alloc(n int) (block, error)  { return heap.Alloc(n, 16) }
func zeroed(n int) (block, error) { return heap.Zeroed(n, 16) }
func free(b block)                { heap.Free(b) }

func realloc(b block, _, n int) (block, error) { return freehold.Realloc(heap, b, n, 16) }

func bump(n int) (block, error) { return heap.Alloc(n, 8) }
func bumpNew() (*object, error) { return freehold.New[object](heap) }
func reset()                    { heap.Reset() }
func enter() epoch.Guard        { return heap.Enter() }

func version() string { return "freehold, " + goVersion() }
