// Peer: freehold's Heap behind the Allocator interface, as a library gets it.

//go:build peer_interface

package main

import "github.com/freehold-go/freehold"

var heap freehold.Allocator = freehold.NewHeap(nil)
