// Allocator: the interface of modernc.org/memory on a heap.

// Package memory takes the place of modernc.org/memory, from which modernc.org/libc, and thus all C that modernc.org
// translates to Go, has its memory:
//
//	go mod edit -replace modernc.org/memory=../freehold/adapters/memory     # a clone
//	go mod tidy
//
// From the first release on the path may be github.com/freehold-go/freehold/adapters/memory@v0.1.0.
//
// The program needs no other change. What C allocates by malloc are then blocks of a freehold heap, which profiles and package track show as
// "modernc.org/memory". Blocks have their size, where modernc.org/memory rounds up to a power of two, and memory that was freed
// goes back to the system after a second, where it keeps up to as much as was ever live.
//
// A free of what is not a live block, freed twice for example, is a panic that names the mistake. It is undetected otherwise.
//
// # A limit
//
// [Options] is how heaps are made. A limit is set before libc allocates, in the init of a package whose path sorts before modernc.org:
//
//	func init() { memory.Options.MaxBytes = 1 << 30 } // import "modernc.org/memory"
//
// Beyond it C's malloc returns NULL.
//
// # When not to use it
//
// SQLite alone is better served by adapters/sqlite, which takes a heap of yours and needs no replace. Libraries cannot use this:
// a replace is of the main module.
//
// Tests with -race need -gcflags=all=-d=checkptr=0: the race detector sees freehold's memory because it is Go's then, and checkptr
// stops translated C, which computes with addresses.
package memory

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
)

// Options is how the heap of an Allocator is made, which its first block does.
var Options = freehold.HeapOptions{Name: "modernc.org/memory"}

// heaps are those of Allocators with blocks, for UsableSize, which gets none: *freehold.Heap to nothing.
var heaps sync.Map

// Allocator allocates memory from a heap of its own. Its zero value is ready for use. It is not safe for concurrent use, except that
// blocks of one may be freed while another allocates.
type Allocator struct {
	Allocs int // live blocks
	Bytes  int // 0: the heap's figures are in package track
	Mmaps  int // 0

	heap *freehold.Heap
}

// result counts a block and returns its address, or the error if there is none.
func (a *Allocator) result(p unsafe.Pointer, size int) (uintptr, error) {
	if p == nil {
		return 0, fmt.Errorf("freehold: memory: %w: %d bytes", freehold.ErrOutOfMemory, size)
	}
	a.Allocs++
	return uintptr(p), nil
}

// own returns a's heap.
func (a *Allocator) own() *freehold.Heap {
	if a.heap == nil {
		a.heap = freehold.NewHeap(&Options)
		heaps.Store(a.heap, nil)
	}
	return a.heap
}

// UintptrMalloc returns the address of a block of size bytes, at a multiple of 16, whose contents are undefined. It is 0 for size 0. It panics if size is
// negative. The error matches freehold.ErrOutOfMemory.
func (a *Allocator) UintptrMalloc(size int) (uintptr, error) {
	if size == 0 {
		return 0, nil
	}
	return a.result(a.own().Malloc(size), size)
}

// UintptrCalloc is UintptrMalloc, and the block is zero.
func (a *Allocator) UintptrCalloc(size int) (uintptr, error) {
	if size == 0 {
		return 0, nil
	}
	return a.result(a.own().Calloc(1, size), size)
}

// UintptrRealloc resizes the block at p to size bytes, moves it if it must, and returns its address. It leaves the block as it
// is on an error, which a negative size is too. A p of 0 makes it UintptrMalloc, and size 0 UintptrFree. It panics if p is no live block of a.
func (a *Allocator) UintptrRealloc(p uintptr, size int) (uintptr, error) {
	if p == 0 {
		return a.UintptrMalloc(size)
	}
	if size == 0 {
		return 0, a.UintptrFree(p)
	}
	var r unsafe.Pointer
	if size > 0 { // libc passes C's sizes of more than an int as negative ones
		r = a.own().ReallocPointer(pointer(p), size)
	}
	addr, err := a.result(r, size)
	if err == nil {
		a.Allocs-- // the old one
	}
	return addr, err
}

// UintptrFree frees the block at p. A p of 0 is a no-op. It panics if p is no live block of a. The error is nil.
func (a *Allocator) UintptrFree(p uintptr) error {
	if p != 0 {
		a.own().FreePointer(pointer(p))
		a.Allocs--
	}
	return nil
}

// UintptrUsableSize returns the number of bytes that the block at p has, of any Allocator. It is 0 for 0, and for what no heap
// of an Allocator has.
func UintptrUsableSize(p uintptr) (size int) {
	if p != 0 {
		b := unsafe.Slice((*byte)(pointer(p)), 1)
		heaps.Range(func(h, _ any) bool {
			if heap := h.(*freehold.Heap); heap.Owns(b) {
				size = heap.UsableSize(pointer(p))
			}
			return size == 0
		})
	}
	return size
}

// Trim gives memory without blocks back to the system now. The error is nil.
func (a *Allocator) Trim() error {
	if a.heap != nil {
		a.heap.Trim()
	}
	return nil
}

// Close frees all blocks and sets a to its zero value. The error is nil.
func (a *Allocator) Close() error {
	if a.heap != nil {
		heaps.Delete(a.heap)
		a.heap.Close()
	}
	*a = Allocator{}
	return nil
}

func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
