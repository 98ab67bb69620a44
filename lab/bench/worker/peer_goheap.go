// Peer: the Go heap. Freeing is leaving it to the collector, which runs with
// its default settings and inside the measured time.

//go:build peer_goheap

package main

import "slices"

func alloc(n int) (block, error)  { return make([]byte, n), nil }
func zeroed(n int) (block, error) { return make([]byte, n), nil }
func free(block)                  {}

// realloc is what append does, without room to spare.
func realloc(b block, old, n int) (block, error) { return slices.Grow(b, n-old)[:n:n], nil }

func version() string { return goVersion() }
