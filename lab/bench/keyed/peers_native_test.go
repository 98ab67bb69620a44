//go:build peer_boost || peer_absl

package keyed

import "github.com/freehold-go/freehold/lab/bench/keyed/native"

var (
	numbers = []peer[uint64]{{native.Hash, func(room int) container[uint64] { return ofNative(native.NewHash(room)) }}}
	// One of these is of another kind than the program's map, and is not run.
	shared  = []peer[uint64]{{native.Other, func(int) container[uint64] { return ofNative(native.NewOther()) }}}
	ordered = shared
)

func ofNative(m native.Map) container[uint64] {
	c := ofBatches(m.Get, m.Scan, batched[uint64]{m.Put, m.Look, m.Delete})
	c.share = m.Share
	return c
}
