// Peer: github.com/tidwall/btree.

//go:build peer_tidwall

package main

import "github.com/tidwall/btree"

type ordered = *btree.Map[uint64, uint64]

func newOrdered() ordered                           { return &btree.Map[uint64, uint64]{} }
func lenOrdered(m ordered) int                      { return m.Len() }
func putOrdered(m ordered, k, v uint64)             { m.Set(k, v) }
func deleteOrdered(m ordered, k uint64)             { m.Delete(k) }
func getOrdered(m ordered, k uint64) (uint64, bool) { return m.Get(k) }

func scanOrdered(m ordered) (sum uint64) {
	m.Scan(func(k, v uint64) bool {
		sum += k ^ v
		return true
	})
	return sum
}
