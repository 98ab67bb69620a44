package main

import (
	"math"
	"os"
	"runtime/debug"
)

var goBackend = backendKind{
	name:  "go",
	title: "Go heap",
	about: "the Go heap: free drops the reference and the collector finds out later; trim is debug.FreeOSMemory",
	open: func(limit int64) (backend, error) {
		if limit > 0 {
			return nil, noLimit("go")
		}
		return &goHeap{previous: softenLimit()}, nil
	},
}

// goHeap is the Go heap as a backend.
type goHeap struct{ previous int64 }

func (*goHeap) alloc(size int) ([]byte, error) { return make([]byte, size), nil }
func (*goHeap) free([]byte)                    {}
func (*goHeap) trim()                          { debug.FreeOSMemory() }
func (*goHeap) stats() backendStats            { return backendStats{allocated: -1} }
func (g *goHeap) close()                       { debug.SetMemoryLimit(g.previous) }

// softenLimit sets the memory limit to nine tenths of the machine's memory,
// unless the user has set one: garbage may double a heap, and the kernel would
// kill the process where a limit makes the collector work harder.
func softenLimit() (previous int64) {
	previous = debug.SetMemoryLimit(-1)
	if total, _ := machineMemory(); total > 0 && os.Getenv("GOMEMLIMIT") == "" && previous == math.MaxInt64 {
		debug.SetMemoryLimit(total / 10 * 9)
	}
	return previous
}
