// Peer: no allocator at all, so that what the loops themselves cost shows.
// Every block is the same one.

//go:build peer_loop

package main

var only = make([]byte, 1<<20)

func alloc(n int) (block, error)  { return only[:n:n], nil }
func zeroed(n int) (block, error) { return only[:n:n], nil }
func free(block)                  {}

func realloc(b block, _, _ int) (block, error) { return b, errCannot }

func version() string { return goVersion() }
