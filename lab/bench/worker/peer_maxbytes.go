// Peer: freehold's Heap with a hard limit of its own.

//go:build peer_maxbytes

package main

import "github.com/freehold-go/freehold"

var heap = freehold.NewHeap(&freehold.HeapOptions{MaxBytes: cacheBytes})
