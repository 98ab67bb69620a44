// Peer: freehold's Heap with a hard limit of its own.

//go:build peer_maxbytes

package alloc

import "github.com/freehold-go/freehold"

const peer = "freehold-maxbytes"

var heap = freehold.NewHeap(&freehold.HeapOptions{MaxBytes: cacheBytes})
