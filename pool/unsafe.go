// Unsafe: the package's conversions.

package pool

import "unsafe"

// pointer turns an address in a chunk or its side into a pointer: that memory
// does not move, and the chunk keeps it.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// state returns the state that stands at addr.
func state(addr uintptr) *uint8 { return (*uint8)(pointer(addr)) }

// gen returns the generation of block i in a chunk.
func gen(gens, i uintptr) *word { return (*word)(pointer(gens + i*8)) }
