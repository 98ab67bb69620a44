//go:build !amd64 || race || freehold_portable || asan

package heap

import "unsafe"

// countInAssembly does nothing where there is none.
func countInAssembly(bool) {}

// Alloc returns a block of size bytes at a multiple of align, zeroed or not.
func (h *Heap) Alloc(size, align int, zero bool) ([]byte, error) {
	return h.alloc(size, align, zero)
}

// Free takes back a block.
func (h *Heap) Free(b []byte) { h.free(b) }

// FreePointer frees the block at p, nothing if p is nil.
func (h *Heap) FreePointer(p unsafe.Pointer) { h.freePointer(p) }

// Alloc is the heap's, in a cache of its owner's.
func (o *LocalCache) Alloc(size, align int, zero bool) ([]byte, error) {
	return o.alloc(size, align, zero)
}

// Free is the heap's, into a cache of its owner's.
func (o *LocalCache) Free(b []byte) { o.free(b) }
