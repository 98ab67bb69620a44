// Peer: github.com/google/btree.

//go:build peer_google

package main

import "github.com/google/btree"

type item struct{ key, value uint64 }

type ordered = *btree.BTreeG[item]

// degree is what its documentation's benchmarks use.
const degree = 32

func newOrdered() ordered {
	return btree.NewG(degree, func(a, b item) bool { return a.key < b.key })
}
func lenOrdered(m ordered) int          { return m.Len() }
func putOrdered(m ordered, k, v uint64) { m.ReplaceOrInsert(item{k, v}) }
func deleteOrdered(m ordered, k uint64) { m.Delete(item{key: k}) }

func getOrdered(m ordered, k uint64) (uint64, bool) {
	it, ok := m.Get(item{key: k})
	return it.value, ok
}

func scanOrdered(m ordered) (sum uint64) {
	m.Ascend(func(it item) bool {
		sum += it.key ^ it.value
		return true
	})
	return sum
}
