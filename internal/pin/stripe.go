package pin

import "unsafe"

// Stripe returns a number below 2^bits that depends on where the goroutine's
// stack is: for what goroutines count in several words, so that they seldom
// write to the same. Any word would be right, and the next call may name
// another.
//
// With -asan, the compiler moves what becomes an unsafe.Pointer to the Go heap, unless told
// otherwise.
//
//go:nocheckptr
func Stripe(bits uint) uint32 {
	var local byte
	const stackShift = 11 // the smallest stack is 2 KiB
	return uint32(uintptr(unsafe.Pointer(&local))>>stackShift) * 2654435769 >> (32 - bits)
}
