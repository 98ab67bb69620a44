//go:build !amd64 || race

package pool

import "sync/atomic"

// Values that one goroutine writes while others may read them: see word_plain.go.
type (
	word    uint64
	status  uint32 // see chunk.go
	address uintptr
)

func (w *word) load() uint64   { return atomic.LoadUint64((*uint64)(w)) }
func (w *word) store(v uint64) { atomic.StoreUint64((*uint64)(w), v) }
func (w *word) inc()           { w.store(w.load() + 1) }

// advance is inc if the word equals old. One of several racing calls succeeds.
func (w *word) advance(old uint64) bool {
	return atomic.CompareAndSwapUint64((*uint64)(w), old, old+1)
}

func (s *status) load() status   { return status(atomic.LoadUint32((*uint32)(s))) }
func (s *status) store(v status) { atomic.StoreUint32((*uint32)(s), uint32(v)) }
func (s *status) inc()           { s.store(s.load() + 1) }
func (s *status) dec()           { s.store(s.load() - 1) }

func (a *address) load() uintptr   { return atomic.LoadUintptr((*uintptr)(a)) }
func (a *address) store(v uintptr) { atomic.StoreUintptr((*uintptr)(a), v) }
