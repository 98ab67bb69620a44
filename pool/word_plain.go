// Words: what one goroutine writes and others may look at meanwhile.
//
// On these processors an aligned word is read and written whole.

//go:build (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x) && !race

package pool

import "sync/atomic"

type word uint64

func (w *word) load() uint64   { return atomic.LoadUint64((*uint64)(w)) }
func (w *word) store(v uint64) { *w = word(v) }
