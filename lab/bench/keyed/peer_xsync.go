// Peer: github.com/puzpuzpuz/xsync.

//go:build peer_xsync

package main

import "github.com/puzpuzpuz/xsync/v4"

type shared = *xsync.Map[uint64, uint64]

func newShared() shared                                { return xsync.NewMap[uint64, uint64]() }
func putShared(m shared, k, v uint64)                  { m.Store(k, v) }
func deleteShared(m shared, k uint64)                  { m.Delete(k) }
func getShared(m shared, k uint64) (v uint64, ok bool) { return m.Load(k) }
