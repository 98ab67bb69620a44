//go:build peer_boost || peer_absl

package keyed

import "github.com/freehold-go/freehold/lab/bench/keyed/native"

var numbers = []peer[uint64]{{native.Name, func(int) container[uint64] {
	m := native.New()
	return ofBatches(m.Get, m.Scan, batched[uint64]{m.Put, m.Look, m.Delete})
}}}
