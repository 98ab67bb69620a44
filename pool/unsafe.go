// Unsafe: the package's conversions.

package pool

import "unsafe"

// pointer turns an address in a chunk or its metadata into a pointer. That memory does not move,
// and the chunk keeps it. addr is not 0: the compiler assumes that the result is not nil.
//
//go:nocheckptr
func pointer(addr uintptr) unsafe.Pointer { return unsafe.Add(nil, addr) }

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// statusAt returns the status at addr.
func statusAt(addr uintptr) *status { return (*status)(pointer(addr)) }

// gen returns the generation of the block, which must have one.
func (s *status) gen() *word { return &(*versionedStatus)(unsafe.Pointer(s)).gen }

// pointer returns the block.
func (e *held) pointer() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&e.addr)) }

// age invalidates the handles to the block, which must have a generation.
func (s *status) age() { (*versionedStatus)(unsafe.Pointer(s)).gen.inc() }
