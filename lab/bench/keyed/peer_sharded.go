// Peer: freehold's hashmap.Shared.

//go:build peer_sharded

package main

import (
	"github.com/freehold-go/freehold/hashmap"
)

type shared = *hashmap.Shared[uint64, uint64]

func newShared() shared {
	return hashmap.NewShared[uint64, uint64](newHeap(), nil)
}
func putShared(m shared, k, v uint64)                  { must(m.Put(k, v)) }
func deleteShared(m shared, k uint64)                  { m.Delete(k) }
func getShared(m shared, k uint64) (v uint64, ok bool) { return m.Get(k) }
