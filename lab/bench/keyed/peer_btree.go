// Peer: freehold's btree.Map.

//go:build peer_btree

package main

import (
	"github.com/freehold-go/freehold/btree"
)

type ordered = *btree.Map[uint64, uint64]

func newOrdered() ordered                           { return btree.New[uint64, uint64](newHeap(), nil) }
func lenOrdered(m ordered) int                      { return m.Len() }
func putOrdered(m ordered, k, v uint64)             { must(m.Put(k, v)) }
func deleteOrdered(m ordered, k uint64)             { m.Delete(k) }
func getOrdered(m ordered, k uint64) (uint64, bool) { return m.Get(k) }

func scanOrdered(m ordered) (sum uint64) {
	for k, v := range m.All() {
		sum += k ^ v
	}
	return sum
}
