// Peer: ristretto's z.Calloc and z.Free, zeroed whether asked or not.
//
// Without the build tag jemalloc z is the Go heap, and Free does nothing.

//go:build peer_ristretto

package main

import "github.com/dgraph-io/ristretto/v2/z"

func alloc(n int) (block, error)  { return z.Calloc(n, "bench"), nil }
func zeroed(n int) (block, error) { return z.Calloc(n, "bench"), nil }
func free(b block)                { z.Free(b) }

func realloc(b block, _, _ int) (block, error) { return b, errCannot }

func version() string {
	if z.CallocNoRef(1, "bench") != nil {
		return "ristretto z on jemalloc"
	}
	return "ristretto z on the Go heap"
}
