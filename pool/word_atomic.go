//go:build !(amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x) || race

package pool

import "sync/atomic"

// word is a word that one goroutine writes: see word_plain.go.
type word uint64

func (w *word) load() uint64   { return atomic.LoadUint64((*uint64)(w)) }
func (w *word) store(v uint64) { atomic.StoreUint64((*uint64)(w), v) }
