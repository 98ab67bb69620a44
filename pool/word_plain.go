// Words: single-writer values that other goroutines may read at any time.
//
// On amd64, loads and stores of an aligned word are atomic, and no processor sees stores out of
// order.

//go:build amd64 && !race

package pool

import "sync/atomic"

type (
	word    uint64
	status  uint32 // see chunk.go
	address uintptr
)

func (w *word) load() uint64   { return atomic.LoadUint64((*uint64)(w)) }
func (w *word) store(v uint64) { *w = word(v) }
func (w *word) inc()           { *w++ }

// advance is inc if the word equals old. One of several racing calls succeeds.
func (w *word) advance(old uint64) bool {
	return atomic.CompareAndSwapUint64((*uint64)(w), old, old+1)
}

func (s *status) load() status   { return status(atomic.LoadUint32((*uint32)(s))) }
func (s *status) store(v status) { *s = v }
func (s *status) inc()           { *s++ }
func (s *status) dec()           { *s-- }

func (a *address) load() uintptr   { return atomic.LoadUintptr((*uintptr)(a)) }
func (a *address) store(v uintptr) { *a = address(v) }
