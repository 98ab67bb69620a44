// Memory: the linear memories of WebAssembly modules off-heap.

// Package wazero puts the memories of wazero's WebAssembly modules on freehold:
//
//	import freeholdwazero "github.com/freehold-go/freehold/adapters/wazero"
//
//	ctx = experimental.WithMemoryAllocator(ctx, freeholdwazero.New(freehold.Default()))
//	module, err := runtime.Instantiate(ctx, binary)
//
// A memory that grows is then extended in place, or on Linux, above 8 MiB, moved to other addresses
// without a copy. wazero's default appends to a Go slice: it copies the memory at each step, and
// leaves the old one to the collector. The memory is freed when its module closes, not when a
// collection finds it. An allocator with a limit bounds all guests together.
//
// # Requirements
//
// Close each module, or its runtime: the memory of a dropped module leaks.
//
// After Close, and after a memory.grow, do not use slices that api.Memory.Read returned. With
// wazero's default they keep their old contents; here the memory has other owners.
//
// A module whose start section traps leaks its memory, with any allocator: wazero v1.12 drops it
// without a Close, and closing the runtime does not free it either. Modules that fail in _start or
// in a later call are closed.
//
// wazero frees a memory when the first of the modules that share it by an import closes. So close
// an instance that exports its memory together with the instances that import it, by closing their
// runtime.
//
// A shared memory, of the threads proposal, must not move.
// RuntimeConfig.WithMemoryCapacityFromMax(true) makes wazero ask for all of it at once. Untouched
// pages take no memory, but count against limits.
//
// # When not to use it
//
// It gains nothing for guests that never grow their memory and live as long as the process.
package wazero

import (
	"math"

	"github.com/freehold-go/freehold"
	"github.com/tetratelabs/wazero/experimental"
)

// align is the alignment of the largest value that guests access by atomic instructions, in bytes.
const align = 8

// Allocator implements experimental.MemoryAllocator. It is safe for concurrent use if the allocator
// below it is.
//
// At a limit, memory.grow fails in the guest, which keeps its memory. For a memory without room for
// its first size wazero has no error. Then the call that instantiates the module panics with the
// error of the allocator below, which matches freehold.ErrOutOfMemory.
//
// Make one with [New].
type Allocator struct{ next freehold.Allocator }

// New returns an Allocator on next. It needs no Close. It panics if next is nil.
func New(next freehold.Allocator) *Allocator {
	if next == nil {
		panic("freehold: wazero.New: next is nil")
	}
	return &Allocator{next}
}

// Allocate is for wazero. It returns a memory of capacity bytes, all zero.
func (a *Allocator) Allocate(capacity, _ uint64) experimental.LinearMemory {
	return &memory{a.next, freehold.Must(a.next.Zeroed(toInt(capacity), align))}
}

// A memory is one block: the guest's bytes, and zeros behind them if wazero asked for capacity.
type memory struct {
	next  freehold.Allocator
	block []byte
}

// Reallocate returns the memory with size bytes, or nil if it cannot grow.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.block)) {
		b, err := freehold.ReallocZeroed(m.next, m.block, toInt(size), align)
		if err != nil {
			return nil
		}
		m.block = b
	}
	return m.block[:size]
}

// Free frees the memory, once.
func (m *memory) Free() {
	m.next.Free(m.block)
	m.block = nil
}

// toInt returns size, or the largest int if size exceeds it. No allocator has such a block.
func toInt(size uint64) int { return int(min(size, math.MaxInt)) }
