// Peer: ristretto's z.Allocator, on the Go heap as it is by default. Its buffers
// stay, so the collector has nothing to do.

//go:build peer_ristretto_allocator

package alloc

import "github.com/dgraph-io/ristretto/v2/z"

const peer = "ristretto-allocator"

// The first buffer holds all that the bump loads allocate between two resets.
var heap = z.NewAllocator(2*bumpBytes, "bench")

func alloc(n int) (block, error)  { return heap.Allocate(n), nil }
func zeroed(n int) (block, error) { return heap.AllocateAligned(n), nil }
func free(block)                  {}

func realloc(b block, _, _ int) (block, error) { return b, errCannot }

func bump(n int) (block, error) { return heap.Allocate(n), nil }
func bumpNew() (*object, error) { return (*object)(heap.AllocateAligned(len(object{}))), nil }
func reset()                    { heap.Reset() }
