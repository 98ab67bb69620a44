package alloctest_test

import "unsafe"

// outside returns a pointer to the byte at the given distance from b's first.
func outside(b []byte, at int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at))
}
