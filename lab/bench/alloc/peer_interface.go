// Peer: freehold's Heap behind the Allocator interface, as a library gets it.

//go:build peer_interface

package alloc

import "github.com/freehold-go/freehold"

const peer = "freehold-interface"

var heap freehold.Allocator = freehold.NewHeap(nil)
