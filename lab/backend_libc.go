package main

import (
	"os"

	"github.com/freehold-go/freehold/cmalloc"
)

var libcBackend = backendKind{
	name:  "libc",
	title: "libc",
	about: "the C library's malloc, through cgo: free returns a block at once, trim is malloc_trim where there is one",
	open:  func(limit int64) (backend, error) { return openCHeap("libc", limit) },
}

// cHeap is C's heap as a backend, whichever malloc serves it.
type cHeap struct{ h *cmalloc.Heap }

func (c *cHeap) alloc(size int) ([]byte, error) { return c.h.Alloc(size, 16) }
func (c *cHeap) free(b []byte)                  { c.h.Free(b) }
func (c *cHeap) trim()                          { c.h.Trim() }
func (c *cHeap) close()                         {}

// stats has no figures: C's are of all C code in the process, and of what its
// threads' caches keep.
func (c *cHeap) stats() backendStats { return backendStats{allocated: -1} }

func openCHeap(name string, limit int64) (backend, error) {
	if limit > 0 {
		return nil, noLimit(name)
	}
	h, err := newCHeap(name)
	if err != nil {
		return nil, err
	}
	return &cHeap{h}, nil
}

// newCHeap returns C's heap if the malloc of that name, "libc" or "jemalloc",
// serves it in this process. There is one malloc in a process, and what is
// reported under its name must be its own.
func newCHeap(name string) (*cmalloc.Heap, error) {
	h, err := cmalloc.New()
	if err != nil {
		return nil, unavailablef("%s: %w", name, err)
	}
	is, version := cmalloc.Implementation()
	if is == name || name == "libc" && is == "glibc" {
		return h, nil
	}
	switch preload := os.Getenv(preloadVariable); {
	case preload != "":
		return nil, unavailablef("%s: malloc is %s %s here, with %s=%s: that library is not installed, or is another malloc", name, is, version, preloadVariable, preload)
	case name == "libc" && is == "jemalloc":
		return nil, unavailablef("libc: this build's malloc is jemalloc; build without -tags jemalloc")
	default:
		return nil, unavailablef("%s: malloc is %s %s here", name, is, version)
	}
}
