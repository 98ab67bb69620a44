//go:build !amd64 || race || freehold_portable || asan

package heap

import "unsafe"

// countInAssembly does nothing where there is none.
func countInAssembly(bool) {}

var fast functions

type functions struct{}

func (functions) alloc(h *Heap, size, align int, zero bool) ([]byte, error) {
	return h.alloc(size, align, zero)
}
func (functions) free(h *Heap, b []byte)                { h.free(b) }
func (functions) freePointer(h *Heap, p unsafe.Pointer) { h.freePointer(p) }
func (functions) localAlloc(o *LocalCache, size, align int, zero bool) ([]byte, error) {
	return o.alloc(size, align, zero)
}
func (functions) localFree(o *LocalCache, b []byte) { o.free(b) }
