// Peer: 256 Go maps, each under a sync.RWMutex.

//go:build peer_rwmutex

package main

import "sync"

type lockedMap struct {
	mu sync.RWMutex
	m  map[uint64]uint64
	_  [64 - 24 - 8]byte
}

type shared = *[256]lockedMap

func newShared() shared {
	s := new([256]lockedMap)
	for i := range s {
		s[i].m = map[uint64]uint64{}
	}
	return s
}

// shardOf relies on keys that look random.
func shardOf(s shared, k uint64) *lockedMap { return &s[k>>56] }

func putShared(s shared, k, v uint64) {
	m := shardOf(s, k)
	m.mu.Lock()
	m.m[k] = v
	m.mu.Unlock()
}

func deleteShared(s shared, k uint64) {
	m := shardOf(s, k)
	m.mu.Lock()
	delete(m.m, k)
	m.mu.Unlock()
}

func getShared(s shared, k uint64) (uint64, bool) {
	m := shardOf(s, k)
	m.mu.RLock()
	v, ok := m.m[k]
	m.mu.RUnlock()
	return v, ok
}
