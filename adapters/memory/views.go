// Views: the same blocks as slices and as unsafe.Pointers.

package memory

import "unsafe"

// Malloc is [Allocator.UintptrMalloc] as a slice, whose capacity is the block's usable size. It is
// nil for size 0.
func (a *Allocator) Malloc(size int) ([]byte, error) { return slice(size)(a.UintptrMalloc(size)) }

// Calloc is [Allocator.UintptrCalloc] as a slice. Its bytes up to size are zero.
func (a *Allocator) Calloc(size int) ([]byte, error) { return slice(size)(a.UintptrCalloc(size)) }

// Realloc is [Allocator.UintptrRealloc] of a slice that may have been cut to a shorter length.
func (a *Allocator) Realloc(b []byte, size int) ([]byte, error) {
	return slice(size)(a.UintptrRealloc(start(b), size))
}

// Free is [Allocator.UintptrFree] of a slice that may have been cut to a shorter length.
func (a *Allocator) Free(b []byte) error { return a.UintptrFree(start(b)) }

// UsableSize is [UintptrUsableSize] of the block that begins at p.
func UsableSize(p *byte) int { return UintptrUsableSize(uintptr(unsafe.Pointer(p))) }

// UnsafeMalloc is [Allocator.UintptrMalloc].
func (a *Allocator) UnsafeMalloc(size int) (unsafe.Pointer, error) {
	p, err := a.UintptrMalloc(size)
	return pointer(p), err
}

// UnsafeCalloc is [Allocator.UintptrCalloc].
func (a *Allocator) UnsafeCalloc(size int) (unsafe.Pointer, error) {
	p, err := a.UintptrCalloc(size)
	return pointer(p), err
}

// UnsafeRealloc is [Allocator.UintptrRealloc].
func (a *Allocator) UnsafeRealloc(p unsafe.Pointer, size int) (unsafe.Pointer, error) {
	r, err := a.UintptrRealloc(uintptr(p), size)
	return pointer(r), err
}

// UnsafeFree is [Allocator.UintptrFree].
func (a *Allocator) UnsafeFree(p unsafe.Pointer) error { return a.UintptrFree(uintptr(p)) }

// UnsafeUsableSize is [UintptrUsableSize].
func UnsafeUsableSize(p unsafe.Pointer) int { return UintptrUsableSize(uintptr(p)) }

// slice makes a slice of size bytes of the block at an address.
func slice(size int) func(uintptr, error) ([]byte, error) {
	return func(p uintptr, err error) ([]byte, error) {
		if p == 0 {
			return nil, err
		}
		return unsafe.Slice((*byte)(pointer(p)), UintptrUsableSize(p))[:size], nil
	}
}

// start returns the address of the block of b, or 0 if there is none.
func start(b []byte) uintptr {
	if cap(b) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}
