package hashmap

import "unsafe"

// unsafePointer is for tests that replace a function with such a parameter.
type unsafePointer = unsafe.Pointer

// fillPadding sets all bytes of p, those between fields too.
func fillPadding[T any](p *T, b byte) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p))
	for i := range bytes {
		bytes[i] = b
	}
}

// bytesAt returns a slice of memory that need not be there. It must not be read.
func bytesAt(addr uint64, size int) []byte {
	p := uintptr(addr)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), size)
}
