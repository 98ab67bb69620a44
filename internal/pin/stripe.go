package pin

import "unsafe"

// Stripe returns a number below 2^bits by the address of the goroutine's stack. It picks one word
// of a striped counter, so that goroutines seldom write to the same one. Any word is correct, and
// the next call may return another.
//
// Without nocheckptr, -asan builds would move local to the Go heap, as its address becomes an
// unsafe.Pointer.
//
//go:nocheckptr
func Stripe(bits uint) uint32 {
	var local byte
	const stackShift = 11 // the smallest stack is 2 KiB
	return uint32(uintptr(unsafe.Pointer(&local))>>stackShift) * 2654435769 >> (32 - bits)
}
