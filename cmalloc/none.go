// None: a build that cannot call C, or a system whose free cannot take an aligned block.

//go:build !cgo || !unix

package cmalloc

import (
	"errors"
	"fmt"
	"unsafe"
)

// missing is the reason why this build has no Heap.
var missing = fmt.Errorf("freehold: cmalloc.New: this build has no C malloc, which needs a Unix, a C compiler and CGO_ENABLED=1: %w", errors.ErrUnsupported)

func alloc(size, align uintptr) unsafe.Pointer  { panic(missing.Error()) }
func zeroed(size, align uintptr) unsafe.Pointer { panic(missing.Error()) }
func resize(addr, size uintptr) uintptr         { panic(missing.Error()) }
func free(addr uintptr)                         { panic(missing.Error()) }
func implementation() (name, version string)    { return "", "" }
func readStats() Stats                          { return Stats{-1, -1, -1, -1, -1, -1} }
func trim()                                     {}
