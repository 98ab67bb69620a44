// How much of Go's heap may become off-heap memory, on 32 and 64 bits.

//go:build race || !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows || wasm)

package vm

// maxReserve is the largest reservation to try first.
const maxReserve uintptr = 64 << 20

// The limits of one reservation and of all of them.
const (
	is64            = ^uintptr(0) >> 63
	maxBlockBytes   = 1 << (30 + 2*is64)
	maxBackingBytes = 1 << (31 + 5*is64)
)
