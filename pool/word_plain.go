// Words: values that one goroutine writes while others may read them.
//
// On amd64, loads and stores of an aligned word are atomic, and no processor sees
// stores out of order.

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

// advance is inc if the word is old. Of racing calls one succeeds.
func (w *word) advance(old uint64) bool {
	return atomic.CompareAndSwapUint64((*uint64)(w), old, old+1)
}

func (s *state) load() state   { return state(atomic.LoadUint32((*uint32)(s))) }
func (s *state) store(v state) { *s = v }
func (s *state) inc()          { *s++ }
func (s *state) dec()          { *s-- }

func (a *address) load() uintptr   { return atomic.LoadUintptr((*uintptr)(a)) }
func (a *address) store(v uintptr) { *a = address(v) }
