// Peer: freehold's Heap, called as what it is. The default when no tag says
// otherwise.
//
// Every peer_*.go file defines the same names, small enough to be inlined:
//
//	block                        what alloc returns
//	alloc zeroed realloc free    as in C, with an error
//	touch first bytes            access to a block
//	keeper                       keeps a block from being put on the stack

//go:build !peer

package main

import "github.com/freehold-go/freehold"

var heap = freehold.NewHeap(nil)
