// Limits on off-heap memory taken from Go's heap, for 32 and 64 bits.

//go:build race || !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows || wasm)

package vm

// maxReserve is the first size that a reservation tries.
const maxReserve uintptr = 64 << 20

// The limits of one reservation and of all of them.
const (
	is64            = ^uintptr(0) >> 63
	maxBlockBytes   = 1 << (30 + 2*is64)
	maxBackingBytes = 1 << (31 + 5*is64)
)
