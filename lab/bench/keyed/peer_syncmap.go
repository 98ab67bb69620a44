// Peer: sync.Map.

//go:build peer_syncmap

package main

import "sync"

type shared = *sync.Map

func newShared() shared               { return &sync.Map{} }
func putShared(m shared, k, v uint64) { m.Store(k, v) }
func deleteShared(m shared, k uint64) { m.Delete(k) }

func getShared(m shared, k uint64) (uint64, bool) {
	v, ok := m.Load(k)
	if !ok {
		return 0, false
	}
	return v.(uint64), true
}
