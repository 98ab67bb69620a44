//go:build !linux || race

package vm

// addressesLeft returns how many more bytes of addresses the process may take: here
// only the system knows.
func addressesLeft() uintptr { return ^uintptr(0) }
