//go:build !amd64 || race || freehold_portable

package pool

import "unsafe"

func fastGet(b *Blocks) (unsafe.Pointer, error) { return b.get() }
func fastPut(b *Blocks, p unsafe.Pointer)       { b.put(p) }

func fastAlloc(b *Blocks, size, align int) ([]byte, error) { return b.alloc(size, align) }
func fastFree(b *Blocks, r []byte)                         { b.free(r) }
