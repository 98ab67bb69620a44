// Peer: freehold's Heap, called as what it is. The default when no tag says
// otherwise.
//
// Every peer_*.go file defines the same names, small enough to be inlined:
//
//	block                        what alloc returns
//	alloc zeroed realloc free    as in C, with an error
//	touch first bytes            access to a block
//	keeper                       keeps a block from being put on the stack

//go:build !peer_maxbytes && !peer_limit && !peer_arena && !peer_shared && !peer_cache && !peer_pool && !peer_pool_cache && !peer_ristretto_allocator && !peer_interface && !peer_pointer && !peer_goheap && !peer_modernc && !peer_modernc_mutex && !peer_ristretto && !peer_cgo && !peer_cgo_jemalloc && !peer_loop

package main

import "github.com/freehold-go/freehold"

var heap = freehold.NewHeap(nil)

func alloc(n int) (block, error)  { return heap.Alloc(n, 16) }
func zeroed(n int) (block, error) { return heap.Zeroed(n, 16) }
func free(b block)                { heap.Free(b) }

func realloc(b block, _, n int) (block, error) { return freehold.Realloc(heap, b, n, 16) }

func version() string { return "freehold, " + goVersion() }
