//go:build !amd64 || race || freehold_portable || asan

package pool

import "unsafe"

var fast functions

type functions struct{}

func (functions) get(b *Blocks) (unsafe.Pointer, error) { return b.get() }
func (functions) put(b *Blocks, p unsafe.Pointer)       { b.put(p) }

func (functions) alloc(b *Blocks, size, align int) ([]byte, error) { return b.alloc(size, align) }
func (functions) free(b *Blocks, r []byte)                         { b.free(r) }
