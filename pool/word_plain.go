// Words: what one goroutine writes and others may look at meanwhile.
//
// This processor reads and writes an aligned word whole, and lets nobody see
// stores in another order.

//go:build amd64 && !race

package pool

import "sync/atomic"

type (
	word    uint64
	state   uint32 // see chunk.go
	address uintptr
)

func (w *word) load() uint64   { return atomic.LoadUint64((*uint64)(w)) }
func (w *word) store(v uint64) { *w = word(v) }
func (w *word) inc()           { *w++ }

// advance is inc if the word is old, for one of all who call it at once.
func (w *word) advance(old uint64) bool {
	return atomic.CompareAndSwapUint64((*uint64)(w), old, old+1)
}

func (s *state) load() state   { return state(atomic.LoadUint32((*uint32)(s))) }
func (s *state) store(v state) { *s = v }
func (s *state) inc()          { *s++ }
func (s *state) dec()          { *s-- }

func (a *address) load() uintptr   { return atomic.LoadUintptr((*uintptr)(a)) }
func (a *address) store(v uintptr) { *a = address(v) }
