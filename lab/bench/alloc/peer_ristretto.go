// Peer: ristretto's z.Calloc and z.Free as they are by default: the Go heap, zeroed whether asked
// or not. With its tag jemalloc they are jemalloc by cgo, as the row cgo-jemalloc.

//go:build peer_ristretto

package alloc

import "github.com/dgraph-io/ristretto/v2/z"

const peer = "ristretto"

func alloc(n int) (block, error)  { return z.Calloc(n, "bench"), nil }
func zeroed(n int) (block, error) { return z.Calloc(n, "bench"), nil }
func free(b block)                { z.Free(b) }

func realloc(b block, _, _ int) (block, error) { return b, errCannot }
