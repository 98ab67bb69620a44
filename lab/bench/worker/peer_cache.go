// Peer: freehold's Heap through a Cache, for one goroutine.

//go:build peer_cache

package main

import "github.com/freehold-go/freehold"

var heap = freehold.NewHeap(nil).NewCache()
