package main

import (
	"time"

	"github.com/freehold-go/freehold"
)

var freeholdBackend = backendKind{
	name:  "freehold",
	title: "freehold",
	about: "freehold.Heap: free returns a block at once, Trim gives free pages back without waiting for the decay",
	decay: time.Second, // the default of HeapOptions
	open: func(limit int64) (backend, error) {
		return &freeholdHeap{freehold.NewHeap(&freehold.HeapOptions{Name: "memtest", MaxBytes: int(limit)})}, nil
	},
}

// freeholdHeap is a freehold.Heap as a backend.
type freeholdHeap struct{ h *freehold.Heap }

func (f *freeholdHeap) alloc(size int) ([]byte, error) { return f.h.Alloc(size, 16) }
func (f *freeholdHeap) free(b []byte)                  { f.h.Free(b) }
func (f *freeholdHeap) trim()                          { f.h.Trim() }
func (f *freeholdHeap) stats() backendStats {
	return backendStats{allocated: int64(f.h.Stats().LiveBytes)}
}
func (f *freeholdHeap) close() { f.h.Close() }
