// Peer: a Limit around freehold's Heap.

//go:build peer_limit

package main

import "github.com/freehold-go/freehold"

var heap = freehold.NewLimit(freehold.NewHeap(nil), cacheBytes)
