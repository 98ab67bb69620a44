// Allocator: the interface of modernc.org/memory on a heap.

// Package memory replaces modernc.org/memory, the allocator of modernc.org/libc and so of all C
// that modernc.org translates to Go:
//
//	go mod edit -replace github.com/freehold-go/freehold=../freehold # a clone
//	go mod edit -replace modernc.org/memory=../freehold/adapters/memory
//	go mod tidy
//
// After the first release, the second line suffices, with the path
// github.com/freehold-go/freehold/adapters/memory@v0.1.0.
//
// The program needs no other change. C's malloc then returns blocks of a freehold heap, which
// profiles and package track show as "modernc.org/memory".
//
//   - A block takes its own size; modernc.org/memory rounds up to a power of two.
//   - Freed memory goes back to the system after a second; modernc.org/memory keeps up to its peak.
//   - A wrong free, such as a double free, is a panic that names the mistake; modernc.org/memory
//     does not detect it.
//
// # A limit
//
// [Options] configures the heaps. Set a limit before libc allocates, in the init of a package whose
// path sorts before modernc.org:
//
//	func init() { memory.Options.MaxBytes = 1 << 30 } // import "modernc.org/memory"
//
// Beyond it C's malloc returns NULL.
//
// # When not to use it
//
// For SQLite alone, adapters/sqlite is better: it takes a heap of yours and needs no replace.
// Libraries cannot use this package, since only the main module's replace counts.
//
// Tests with -race need -gcflags=all=-d=checkptr=0. In race builds freehold's memory is Go memory,
// and checkptr stops translated C, which computes with addresses.
package memory

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
)

// Options configures the heap of an Allocator, which its first block makes.
var Options = freehold.HeapOptions{Name: "modernc.org/memory"}

// heaps has the *freehold.Heap of each Allocator with blocks, as keys, for UsableSize, which gets
// no Allocator.
var heaps sync.Map

// Allocator allocates memory from a heap of its own. Its zero value is ready for use. It is not
// safe for concurrent use, except that blocks of one Allocator may be freed while another one
// allocates.
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

// UintptrMalloc returns the address of a block of size bytes, at a multiple of 16, whose contents
// are undefined. It is 0 for size 0. It panics if size is negative. The error matches
// freehold.ErrOutOfMemory.
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

// UintptrRealloc resizes the block at p to size bytes, moves it if it must, and returns its
// address. On an error, such as a negative size, the block is unchanged. A p of 0 makes it
// UintptrMalloc, and size 0 UintptrFree. It panics if p is no live block of a.
func (a *Allocator) UintptrRealloc(p uintptr, size int) (uintptr, error) {
	if p == 0 {
		return a.UintptrMalloc(size)
	}
	if size == 0 {
		return 0, a.UintptrFree(p)
	}
	var r unsafe.Pointer
	if size > 0 { // libc passes a C size above an int as a negative one
		r = a.own().ReallocPointer(pointer(p), size)
	}
	addr, err := a.result(r, size)
	if err == nil {
		a.Allocs-- // the old one
	}
	return addr, err
}

// UintptrFree frees the block at p. A p of 0 is a no-op. It panics if p is no live block of a. The
// error is nil.
func (a *Allocator) UintptrFree(p uintptr) error {
	if p != 0 {
		a.own().FreePointer(pointer(p))
		a.Allocs--
	}
	return nil
}

// UintptrUsableSize returns the number of bytes that the block at p has, of any Allocator. It is 0
// for 0, and for an address outside of all Allocators' heaps.
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
