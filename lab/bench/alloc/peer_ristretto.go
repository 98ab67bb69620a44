// Peer: ristretto's z.Calloc and z.Free, zeroed whether asked or not.
//
// Without the build tag jemalloc z is the Go heap, and Free does nothing.

//go:build peer_ristretto

package alloc

import "github.com/dgraph-io/ristretto/v2/z"

var peer = func() string {
	if z.CallocNoRef(1, "bench") != nil {
		return "ristretto-jemalloc"
	}
	return "ristretto"
}()

func alloc(n int) (block, error)  { return z.Calloc(n, "bench"), nil }
func zeroed(n int) (block, error) { return z.Calloc(n, "bench"), nil }
func free(b block)                { z.Free(b) }

func realloc(b block, _, _ int) (block, error) { return b, errCannot }
